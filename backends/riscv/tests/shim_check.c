/* Machines that answer in place of this one: what the shim makes of their answers. */
#include SHIM

#include <stdio.h>

#define HAS(feature) (UINT64_C(1) << (feature))
#define GC (HAS(CUVIL_RV_M) | HAS(CUVIL_RV_A) | HAS(CUVIL_RV_F) | HAS(CUVIL_RV_D) | HAS(CUVIL_RV_C))
#define LETTERS (1u << ('I' - 'A') | 1u << ('M' - 'A') | 1u << 0 | 1u << 5 | 1u << 3 | 1u << 2)
#define LETTER_V (1u << ('V' - 'A'))

static uint64_t answer_letters, answer_extensions, answer_vlenb;
static int knows_call, knows_key, read_vlenb;

static long hwprobe(cuvil_riscv_pair *pairs, uint64_t count) {
  if (!knows_call) return -1; /* as where the call is not there: ENOSYS */
  for (uint64_t i = 0; i < count; i++) {
    int known = knows_key && pairs[i].key == KEY_EXTENSIONS;
    pairs[i].key = known ? pairs[i].key : -1;
    pairs[i].value = known ? answer_extensions : 0;
  }
  return 0;
}

static uint64_t hwcap(void) { return answer_letters; }

static uint64_t vlenb(void) {
  read_vlenb = 1;
  return answer_vlenb;
}

static uint64_t features(void) {
  const cuvil_riscv_probe probe = {hwprobe, hwcap, vlenb};
  read_vlenb = 0;
  return cuvil_riscv_features_of(&probe);
}

static int failures;

static void expect(const char *what, uint64_t wanted) {
  uint64_t found = features();
  if (found != wanted || read_vlenb != (int)(wanted >> CUVIL_RV_V & 1u)) {
    printf("%s: %llx, not %llx; vlenb read: %d\n", what, (unsigned long long)found,
           (unsigned long long)wanted, read_vlenb);
    failures++;
  }
}

static uint64_t wide(int bits) {
  return HAS(CUVIL_RV_V) | (bits >= 128 ? HAS(CUVIL_RV_ZVL128B) : 0) |
         (bits >= 256 ? HAS(CUVIL_RV_ZVL256B) : 0) | (bits >= 512 ? HAS(CUVIL_RV_ZVL512B) : 0);
}

int main(void) {
  const uint64_t fd_c_v = 1u << FD | 1u << C | 1u << V;
  answer_letters = LETTERS;
  expect("an old kernel, no vectors", GC);
  answer_letters = LETTERS | LETTER_V;
  for (int bits = 128; bits <= 1024; bits *= 2) {
    answer_vlenb = (uint64_t)bits / 8;
    expect("an old kernel, vectors", GC | wide(bits));
  }
  knows_call = 1;
  expect("a kernel that does not know the key", GC | wide(1024));
  knows_key = 1;
  answer_extensions = 1u << FD | 1u << C;
  expect("the newer call says that vectors are off", GC);
  answer_extensions = fd_c_v | 1u << ZVFH;
  answer_vlenb = 32;
  expect("half floats come with their conversion",
         GC | wide(256) | HAS(CUVIL_RV_ZVFH) | HAS(CUVIL_RV_ZVFHMIN));
  answer_extensions = fd_c_v | UINT64_C(1) << ZVFHMIN | 1u << ZFHMIN;
  answer_vlenb = 16;
  expect("conversion alone", GC | wide(128) | HAS(CUVIL_RV_ZVFHMIN) | HAS(CUVIL_RV_ZFHMIN));
  answer_extensions = 1u << FD | 1u << C | 1u << ZVFH | 1u << ZBA | 1u << ZBB | 1u << ZBS;
  expect("no half floats without vectors",
         GC | HAS(CUVIL_RV_ZBA) | HAS(CUVIL_RV_ZBB) | HAS(CUVIL_RV_ZBS));
  return failures;
}
