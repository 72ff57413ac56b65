/* Which features this cpu has and the operating system lets programs use. Bits:
 * cuvil_backend_arm64/features.py. */
#include <stdint.h>

enum { FP16, DOTPROD, FP16FML, I8MM, BF16, SVE, SVE2, NEON, VFP4 };

uint64_t cuvil_arm64_features(void);

#if defined(__linux__)
#include <sys/auxv.h>

/* Bits of AT_HWCAP and AT_HWCAP2 in the kernel's interface for 64-bit Arm. */
#define HAS_ASIMDHP 10 /* fp16 in vectors */
#define HAS_ASIMDDP 20
#define HAS_SVE 22
#define HAS_ASIMDFHM 23
#define HAS2_SVE2 1
#define HAS2_I8MM 13
#define HAS2_BF16 14
#define AT_SECOND 26

static uint64_t bit(unsigned long word, int position, int feature) {
  return (uint64_t)(word >> position & 1u) << feature;
}

#if defined(__arm__)

uint64_t cuvil_arm64_features(void) { /* bits of AT_HWCAP are others there */
  unsigned long one = getauxval(AT_HWCAP);
  return bit(one, 12, NEON) | bit(one, 16, VFP4);
}

#else

uint64_t cuvil_arm64_features(void) {
  unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_SECOND);
  return bit(one, HAS_ASIMDHP, FP16) | bit(one, HAS_ASIMDDP, DOTPROD) |
         bit(one, HAS_ASIMDFHM, FP16FML) | bit(two, HAS2_I8MM, I8MM) | bit(two, HAS2_BF16, BF16) |
         bit(one, HAS_SVE, SVE) | bit(two, HAS2_SVE2, SVE2);
}

#endif

#elif defined(__APPLE__)
#include <stddef.h>
#include <sys/sysctl.h>

static uint64_t has(const char *name, int feature) {
  int value = 0;
  size_t size = sizeof value;
  if (sysctlbyname(name, &value, &size, NULL, 0)) value = 0;
  return (uint64_t)(value != 0) << feature;
}

uint64_t cuvil_arm64_features(void) { /* every such machine has what the first had */
  return 1u << FP16 | 1u << DOTPROD | 1u << FP16FML | has("hw.optional.arm.FEAT_I8MM", I8MM) |
         has("hw.optional.arm.FEAT_BF16", BF16);
}

#else

uint64_t cuvil_arm64_features(void) { return 0; }

#endif
