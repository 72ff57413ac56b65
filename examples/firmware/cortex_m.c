/* Start of a Cortex-M, and its output by semihosting. */
#include "board.h"

#include <stdint.h>

extern uint32_t data_image[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];

static int semihosting(int operation, const void *argument) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_put(const char *text) { semihosting(0x04, text); }

void board_exit(int failed) {
  semihosting(0x18, (const void *)(failed ? 0x20023 : 0x20026)); /* an error, or the end */
  for (;;) {
  }
}

void start(void) {
  for (uint32_t *to = data_start, *from = data_image; to < data_end;) *to++ = *from++;
  for (uint32_t *to = bss_start; to < bss_end;) *to++ = 0;
#if defined(__ARM_FP)
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* CPACR: floats may be used */
  __asm__ volatile("dsb\n\tisb");
#endif
  board_exit(main());
}

static void fault(void) {
  board_put("fault\n");
  board_exit(1);
}

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {(vector)stack_top,
                                                                              start,
                                                                              fault,
                                                                              fault,
                                                                              fault,
                                                                              fault,
                                                                              fault,
                                                                              0,
                                                                              0,
                                                                              0,
                                                                              0,
                                                                              fault,
                                                                              fault,
                                                                              0,
                                                                              fault,
                                                                              fault};
