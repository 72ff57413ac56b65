/* Square roots without instructions against those of this machine, bit by bit. */
#include <math.h>
#include <stdint.h>

#include "check.h"

uint32_t cuvil_sqrt_bits32(uint32_t x);
uint64_t cuvil_sqrt_bits64(uint64_t x);

static uint64_t state = 1;

static uint64_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state ^ state >> 29;
}

static void check32(uint32_t x) {
  float number, root;
  memcpy(&number, &x, 4);
  uint32_t bits = cuvil_sqrt_bits32(x);
  memcpy(&root, &bits, 4);
  float right = sqrtf(number);
  if (isnan(right)) {
    CHECK(isnan(root));
  } else {
    CHECK(root == right && signbit(root) == signbit(right));
  }
}

static void check64(uint64_t x) {
  double number, root;
  memcpy(&number, &x, 8);
  uint64_t bits = cuvil_sqrt_bits64(x);
  memcpy(&root, &bits, 8);
  double right = sqrt(number);
  if (isnan(right)) {
    CHECK(isnan(root));
  } else {
    CHECK(root == right && signbit(root) == signbit(right));
  }
}

int main(void) {
  static const uint32_t edges[] = {0,          1,          2,          0x7fffff,   0x800000,
                                   0x3f7fffff, 0x3f800000, 0x3f800001, 0x407fffff, 0x7f7fffff,
                                   0x7f800000, 0x7f800001, 0x7fc00000};
  for (unsigned i = 0; i < sizeof edges / sizeof edges[0]; i++) {
    check32(edges[i]);
    check32(edges[i] | 0x80000000u);
    check64((uint64_t)edges[i] << 32);
    check64((uint64_t)edges[i] << 32 | 0x8000000000000001u);
    check64(edges[i]);
  }
  for (int i = 0; i < 200000 && check_failures < 10; i++) {
    check32((uint32_t)next());
    check32((uint32_t)next() & 0x7fffffffu);
    check64(next());
    check64(next() & 0x7fffffffffffffffu);
  }
  return check_result();
}
