/* Which features this cpu has and the kernel lets programs use: the hwprobe call where the kernel
 * has it, else the word of single letters in the auxiliary vector. The width of vector registers is
 * not a thing of either: the register vlenb tells, once the kernel says that there are any. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall() */
#endif
#include <stdint.h>

/* Bits of the answer: cuvil_backend_riscv/features.py. */
enum {
  CUVIL_RV_M,
  CUVIL_RV_A,
  CUVIL_RV_F,
  CUVIL_RV_D,
  CUVIL_RV_C,
  CUVIL_RV_ZBA,
  CUVIL_RV_ZBB,
  CUVIL_RV_ZBS,
  CUVIL_RV_ZVL128B,
  CUVIL_RV_V,
  CUVIL_RV_ZVL256B,
  CUVIL_RV_ZVL512B,
  CUVIL_RV_ZFHMIN,
  CUVIL_RV_ZVFHMIN,
  CUVIL_RV_ZVFH
};

/* One question to the kernel; it sets `key` to -1 where it does not know it. */
typedef struct {
  int64_t key;
  uint64_t value;
} cuvil_riscv_pair;

/* hwprobe: fills `count` pairs for all cpus; not 0 where the kernel has no such call (before 6.4).
 * hwcap: the kernel's older word, a bit per single-letter extension. vlenb: bytes of a vector
 * register; called only where there are vector registers. */
typedef struct {
  long (*hwprobe)(cuvil_riscv_pair *pairs, uint64_t count);
  uint64_t (*hwcap)(void);
  uint64_t (*vlenb)(void);
} cuvil_riscv_probe;

/* The features that the probe's system has; tests answer in its place. */
uint64_t cuvil_riscv_features_of(const cuvil_riscv_probe *probe);

/* The features of this machine. */
uint64_t cuvil_riscv_features(void);

#define LETTER(letter) (UINT64_C(1) << ((letter) - 'A'))
#define KEY_EXTENSIONS 4 /* RISCV_HWPROBE_KEY_IMA_EXT_0 of Linux's asm/hwprobe.h; the bits: too */
enum { FD = 0, C = 1, V = 2, ZBA = 3, ZBB = 4, ZBS = 5, ZFHMIN = 28, ZVFH = 30, ZVFHMIN = 31 };

static uint64_t bit(uint64_t word, int position, int feature) {
  return (word >> position & 1u) << feature;
}

static uint64_t bits_of_letters(uint64_t word) {
  return bit(word, 'M' - 'A', CUVIL_RV_M) | bit(word, 'A' - 'A', CUVIL_RV_A) |
         bit(word, 'F' - 'A', CUVIL_RV_F) | bit(word, 'D' - 'A', CUVIL_RV_D) |
         bit(word, 'C' - 'A', CUVIL_RV_C) | bit(word, 'V' - 'A', CUVIL_RV_V);
}

static uint64_t bits_of_extensions(uint64_t word) {
  return bit(word, FD, CUVIL_RV_F) | bit(word, FD, CUVIL_RV_D) | bit(word, C, CUVIL_RV_C) |
         bit(word, V, CUVIL_RV_V) | bit(word, ZBA, CUVIL_RV_ZBA) | bit(word, ZBB, CUVIL_RV_ZBB) |
         bit(word, ZBS, CUVIL_RV_ZBS) | bit(word, ZFHMIN, CUVIL_RV_ZFHMIN);
}

/* Without vector registers there is no vlenb to read, and nothing that works on them. */
static uint64_t bits_of_vectors(uint64_t vlenb, uint64_t extensions) {
  uint64_t found = bit(extensions, ZVFHMIN, CUVIL_RV_ZVFHMIN);
  if (extensions >> ZVFH & 1u) {
    found |= UINT64_C(1) << CUVIL_RV_ZVFH | UINT64_C(1) << CUVIL_RV_ZVFHMIN;
  }
  if (vlenb >= 16) found |= UINT64_C(1) << CUVIL_RV_ZVL128B;
  if (vlenb >= 32) found |= UINT64_C(1) << CUVIL_RV_ZVL256B;
  if (vlenb >= 64) found |= UINT64_C(1) << CUVIL_RV_ZVL512B;
  return found;
}

uint64_t cuvil_riscv_features_of(const cuvil_riscv_probe *probe) {
  cuvil_riscv_pair pair = {KEY_EXTENSIONS, 0};
  uint64_t found = bits_of_letters(probe->hwcap()), extensions = 0;
  if (probe->hwprobe(&pair, 1) == 0 && pair.key == KEY_EXTENSIONS) {
    extensions = pair.value;
    found = (found & ~(UINT64_C(1) << CUVIL_RV_V)) | bits_of_extensions(extensions);
  }
  if (found >> CUVIL_RV_V & 1u) found |= bits_of_vectors(probe->vlenb(), extensions);
  return found;
}

#if defined(__riscv) && defined(__linux__)
#include <sys/auxv.h>
#include <unistd.h>

#define SYS_HWPROBE 258 /* __NR_riscv_hwprobe; older headers lack it */

static long linux_hwprobe(cuvil_riscv_pair *pairs, uint64_t count) {
  return syscall(SYS_HWPROBE, pairs, count, 0L, 0L, 0L);
}

static uint64_t linux_hwcap(void) { return getauxval(AT_HWCAP); }

__attribute__((target("arch=+v"))) static uint64_t own_vlenb(void) { return __builtin_rvv_vlenb(); }

uint64_t cuvil_riscv_features(void) {
  const cuvil_riscv_probe probe = {linux_hwprobe, linux_hwcap, own_vlenb};
  return cuvil_riscv_features_of(&probe);
}
#endif
