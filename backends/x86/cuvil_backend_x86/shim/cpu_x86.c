/* Which features this cpu has and the operating system lets programs use: CPUID, then XGETBV for
 * the registers that must be saved. Imports nothing. Bits: cuvil_backend_x86/features.py. */
#include <stdint.h>

typedef struct {
  uint32_t eax, ebx, ecx, edx;
} registers;

static registers cpuid(uint32_t leaf, uint32_t subleaf) {
  registers r;
  __asm__ volatile("cpuid"
                   : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
                   : "a"(leaf), "c"(subleaf));
  return r;
}

static uint64_t saved_state(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

enum {
  SSE42,
  AVX,
  F16C,
  FMA,
  AVX2,
  BMI2,
  AVXVNNI,
  AVX512F,
  AVX512BW,
  AVX512DQ,
  AVX512VL,
  AVX512CD,
  AVX512VNNI,
  AVX512BF16
};
#define YMM_STATE 0x6u  /* xmm and upper ymm */
#define ZMM_STATE 0xe6u /* and opmask, upper zmm, zmm16-31 */

static uint64_t bit(uint32_t word, int position, int feature) {
  return (uint64_t)(word >> position & 1u) << feature;
}

uint64_t cuvil_x86_features(void);

uint64_t cuvil_x86_features(void) {
  uint32_t last = cpuid(0, 0).eax;
  registers one = cpuid(1, 0);
  uint64_t found = bit(one.ecx, 20, SSE42);
  uint64_t state = one.ecx >> 27 & 1u ? saved_state() : 0; /* OSXSAVE */
  int ymm = (state & YMM_STATE) == YMM_STATE, zmm = (state & ZMM_STATE) == ZMM_STATE;
  if (ymm) found |= bit(one.ecx, 28, AVX) | bit(one.ecx, 29, F16C) | bit(one.ecx, 12, FMA);
  if (last < 7) return found;
  registers seven = cpuid(7, 0);
  registers more = seven.eax ? cpuid(7, 1) : (registers){0, 0, 0, 0};
  found |= bit(seven.ebx, 8, BMI2);
  if (ymm) found |= bit(seven.ebx, 5, AVX2) | bit(more.eax, 4, AVXVNNI);
  if (!zmm) return found;
  return found | bit(seven.ebx, 16, AVX512F) | bit(seven.ebx, 30, AVX512BW) |
         bit(seven.ebx, 17, AVX512DQ) | bit(seven.ebx, 31, AVX512VL) |
         bit(seven.ebx, 28, AVX512CD) | bit(seven.ecx, 11, AVX512VNNI) |
         bit(more.eax, 5, AVX512BF16);
}
