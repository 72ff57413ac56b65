/* Square roots for cpus without an instruction for them, rounded to nearest as IEEE 754 wants: what
 * generated code calls there. Patterns of bits go in and out, whatever registers floats take. */
#include <stdint.h>

/* The first `bits` bits of the square root of `value`, which is 2 * pairs bits long, as an integer:
 * for more bits than pairs the value goes on with zeros. */
static uint64_t whole_root(uint64_t value, int pairs, int bits) {
  uint64_t root = 0, rest = 0;
  for (int i = 0; i < bits; i++) {
    uint64_t next = i < pairs ? value >> 2 * (pairs - 1 - i) & 3 : 0;
    rest = rest << 2 | next;
    uint64_t trial = root << 2 | 1;
    root <<= 1;
    if (rest >= trial) {
      rest -= trial;
      root |= 1;
    }
  }
  return root;
}

/* A float of `mantissa` stored bits and an exponent of `width` bits. */
static uint64_t root_of(uint64_t x, int mantissa, int width) {
  const uint64_t one = (uint64_t)1 << mantissa, top = (one << width) - one; /* infinity */
  const int bias = (1 << (width - 1)) - 1;
  if (x == one << width || !x) return x; /* zeros keep their sign */
  if (x > top) return (x & ~(one << width)) > top ? x | one >> 1 : top | one >> 1;
  if (x == top) return x;
  int exponent = (int)(x >> mantissa);
  uint64_t digits = x & (one - 1);
  if (exponent) {
    digits |= one;
  } else {
    for (exponent = 1; !(digits & one); exponent--) digits <<= 1;
  }
  exponent -= bias;
  if (exponent & 1) digits <<= 1;
  exponent = (exponent - (exponent & 1)) / 2 + bias;
  /* One bit more than is kept says where to round: no root lies halfway between two floats. */
  if (mantissa & 1) digits <<= 1;
  uint64_t root = whole_root(digits, (mantissa + 3) / 2, mantissa + 2);
  return ((uint64_t)exponent << mantissa) + (root >> 1) + (root & 1) - one;
}

uint32_t cuvil_sqrt_bits32(uint32_t x) { return (uint32_t)root_of(x, 23, 8); }

uint64_t cuvil_sqrt_bits64(uint64_t x) { return root_of(x, 52, 11); }
