/* What differs by processor: the pause hint and the control of denormal numbers. Builtins only: the
 * runtime travels as bitcode, where inline assembly would need an assembler of the target. */
#ifndef CUVIL_ARCH_H
#define CUVIL_ARCH_H

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)

#define CUVIL_FLUSH_BITS 0x8040u /* flush-to-zero, denormals-are-zero */

static inline void cuvil_pause(void) { __builtin_ia32_pause(); }
#if defined(__SSE__)
static inline uint64_t cuvil_fp_control(void) { return __builtin_ia32_stmxcsr(); }
static inline void cuvil_set_fp_control(uint64_t bits) { __builtin_ia32_ldmxcsr((unsigned)bits); }
#else
static inline uint64_t cuvil_fp_control(void) { return CUVIL_FLUSH_BITS; }
static inline void cuvil_set_fp_control(uint64_t bits) { (void)bits; }
#endif

#elif defined(__aarch64__)

#define CUVIL_FLUSH_BITS (1u << 24) /* FPCR.FZ */

#if defined(__clang__)
static inline void cuvil_pause(void) { __builtin_arm_yield(); }
static inline uint64_t cuvil_fp_control(void) { return __builtin_arm_rsr64("fpcr"); }
static inline void cuvil_set_fp_control(uint64_t bits) { __builtin_arm_wsr64("fpcr", bits); }
#else
static inline void cuvil_pause(void) { __asm__ volatile("yield"); }
static inline uint64_t cuvil_fp_control(void) { return __builtin_aarch64_get_fpcr64(); }
static inline void cuvil_set_fp_control(uint64_t bits) { __builtin_aarch64_set_fpcr64(bits); }
#endif

#else /* RISC-V and others always keep denormals */

#define CUVIL_FLUSH_BITS 0u

static inline void cuvil_pause(void) {}
static inline uint64_t cuvil_fp_control(void) { return 0; }
static inline void cuvil_set_fp_control(uint64_t bits) { (void)bits; }

#endif

/* Turns flushing on; returns the control word to hand to cuvil_flush_end. */
static inline uint64_t cuvil_flush_begin(void) {
  uint64_t old = cuvil_fp_control();
  if ((old & CUVIL_FLUSH_BITS) != CUVIL_FLUSH_BITS) cuvil_set_fp_control(old | CUVIL_FLUSH_BITS);
  return old;
}

static inline void cuvil_flush_end(uint64_t old) {
  if ((old & CUVIL_FLUSH_BITS) != CUVIL_FLUSH_BITS) cuvil_set_fp_control(old);
}

#endif
