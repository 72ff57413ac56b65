/* Divisions that 32-bit cpus have no instruction for, under the names that code calls them by (the
 * run-time ABI for the Arm architecture). Division by zero gives 0: nothing traps. */
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

#else

typedef int cuvil_nothing; /* a file must hold something */

#endif
