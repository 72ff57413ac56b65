/* Start of a RISC-V of 32 bits, and its output by semihosting. */
#include "board.h"

#include <stdint.h>

extern uint32_t bss_start[], bss_end[];

static int semihosting(int operation, const void *argument) {
  register int a0 __asm__("a0") = operation;
  register const void *a1 __asm__("a1") = argument;
  __asm__ volatile(
      ".option push\n\t.option norvc\n\t.balign 16\n\t"
      "slli zero, zero, 0x1f\n\tebreak\n\tsrai zero, zero, 7\n\t.option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
}

void board_put(const char *text) { semihosting(0x04, text); }

void board_exit(int failed) {
  semihosting(0x18, (const void *)(failed ? 0x20023 : 0x20026)); /* an error, or the end */
  for (;;) {
  }
}

static __attribute__((used)) void run(void) {
  for (uint32_t *to = bss_start; to < bss_end;) *to++ = 0;
  board_exit(main());
}

static __attribute__((used, aligned(4))) void fault(void) {
  board_put("fault\n");
  board_exit(1);
}

/* Where a fault goes; that floats may be used, where there are instructions for them. */
__attribute__((naked, section(".start"), used)) void _start(void) {
  __asm__ volatile(
      "la sp, stack_top\n\t.option push\n\t.option arch, +zicsr\n\t"
      "la t0, fault\n\tcsrw mtvec, t0\n\tli t0, 0x6000\n\tcsrs mstatus, t0\n\t"
      ".option pop\n\tj run");
}
