/* What 32-bit cpus have no instruction for, under the names that code calls it by (the run-time ABI
 * for the Arm architecture): divisions, which give 0 by zero as nothing may trap, and conversions
 * between 64-bit integers and floats, which saturate. */
#include <stdint.h>

#if defined(__arm__)

typedef uint64_t pair __attribute__((vector_size(16)));
/* The base standard returns 16 bytes in r0 to r3: quotient, then remainder. */
#define BASE __attribute__((pcs("aapcs")))

pair __aeabi_uldivmod(uint64_t a, uint64_t b) BASE;
pair __aeabi_ldivmod(int64_t a, int64_t b) BASE;
uint64_t __aeabi_uidivmod(uint32_t a, uint32_t b) BASE;
uint64_t __aeabi_idivmod(int32_t a, int32_t b) BASE;
uint32_t __aeabi_uidiv(uint32_t a, uint32_t b) BASE;
int32_t __aeabi_idiv(int32_t a, int32_t b) BASE;

double __aeabi_l2d(int64_t x) BASE;
double __aeabi_ul2d(uint64_t x) BASE;
float __aeabi_l2f(int64_t x) BASE;
float __aeabi_ul2f(uint64_t x) BASE;
int64_t __aeabi_d2lz(double x) BASE;
uint64_t __aeabi_d2ulz(double x) BASE;
int64_t __aeabi_f2lz(float x) BASE;
uint64_t __aeabi_f2ulz(float x) BASE;

#define TWO_32 4294967296.0
#define TWO_63 (TWO_32 * 2147483648.0)
#define TWO_64 (TWO_32 * TWO_32)

/* One bit of the quotient at a time, from the highest that can be set. */
static pair divide64(uint64_t a, uint64_t b) {
  uint64_t quotient = 0;
  if (!b || a < b) return (pair){0, b ? a : 0};
  for (int shift = __builtin_clzll(b) - __builtin_clzll(a); shift >= 0; shift--) {
    uint64_t part = b << shift;
    if (a >= part) a -= part, quotient |= (uint64_t)1 << shift;
  }
  return (pair){quotient, a};
}

/* Quotient in the lower half, remainder in the upper. */
static uint64_t divide32(uint32_t a, uint32_t b) {
  uint32_t quotient = 0;
  if (!b || a < b) return (uint64_t)(b ? a : 0) << 32;
  for (int shift = __builtin_clz(b) - __builtin_clz(a); shift >= 0; shift--) {
    uint32_t part = b << shift;
    if (a >= part) a -= part, quotient |= (uint32_t)1 << shift;
  }
  return (uint64_t)a << 32 | quotient;
}

BASE pair __aeabi_uldivmod(uint64_t a, uint64_t b) { return divide64(a, b); }

BASE pair __aeabi_ldivmod(int64_t a, int64_t b) {
  uint64_t of_a = a < 0 ? -(uint64_t)a : (uint64_t)a, of_b = b < 0 ? -(uint64_t)b : (uint64_t)b;
  pair found = divide64(of_a, of_b);
  if ((a < 0) != (b < 0)) found[0] = -found[0];
  if (a < 0) found[1] = -found[1];
  return found;
}

BASE uint64_t __aeabi_uidivmod(uint32_t a, uint32_t b) { return divide32(a, b); }

BASE uint64_t __aeabi_idivmod(int32_t a, int32_t b) {
  uint32_t of_a = a < 0 ? -(uint32_t)a : (uint32_t)a, of_b = b < 0 ? -(uint32_t)b : (uint32_t)b;
  uint64_t found = divide32(of_a, of_b);
  uint32_t quotient = (uint32_t)found, rest = (uint32_t)(found >> 32);
  if ((a < 0) != (b < 0)) quotient = -quotient;
  if (a < 0) rest = -rest;
  return (uint64_t)rest << 32 | quotient;
}

BASE uint32_t __aeabi_uidiv(uint32_t a, uint32_t b) { return (uint32_t)divide32(a, b); }

BASE int32_t __aeabi_idiv(int32_t a, int32_t b) { return (int32_t)__aeabi_idivmod(a, b); }

/* Both halves are exact: the sum is rounded once. */
static double to_double(uint64_t x) {
  return (double)(uint32_t)(x >> 32) * TWO_32 + (double)(uint32_t)x;
}

/* The 53 bits that a double holds, the last of them set where others were: rounding those to a
 * float is rounding all. */
static float to_float(uint64_t x) {
  if (x >> 53) x = (x | ((x & 0x7ff) ? 0x800 : 0)) & ~(uint64_t)0x7ff;
  return (float)to_double(x);
}

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

BASE double __aeabi_ul2d(uint64_t x) { return to_double(x); }
BASE double __aeabi_l2d(int64_t x) {
  double found = to_double(magnitude(x));
  return x < 0 ? -found : found;
}
BASE float __aeabi_ul2f(uint64_t x) { return to_float(x); }
BASE float __aeabi_l2f(int64_t x) {
  float found = to_float(magnitude(x));
  return x < 0 ? -found : found;
}

static uint64_t from_double(double x) {
  if (!(x >= 1)) return 0; /* NaN too */
  if (x >= TWO_64) return UINT64_MAX;
  uint32_t upper = (uint32_t)(x / TWO_32);
  return (uint64_t)upper << 32 | (uint32_t)(x - upper * TWO_32);
}

static int64_t signed_from(double x) {
  if (x >= TWO_63) return INT64_MAX;
  if (x <= -TWO_63) return INT64_MIN;
  return x < 0 ? -(int64_t)from_double(-x) : (int64_t)from_double(x);
}

BASE uint64_t __aeabi_d2ulz(double x) { return from_double(x); }
BASE int64_t __aeabi_d2lz(double x) { return signed_from(x); }
BASE uint64_t __aeabi_f2ulz(float x) { return from_double(x); }
BASE int64_t __aeabi_f2lz(float x) { return signed_from(x); }

#else

typedef int cuvil_nothing; /* a file must hold something */

#endif
