/* Whether functions of shim/arithmetic_arm.c give what the C compiler's own arithmetic gives. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define __aeabi_uldivmod own_uldivmod
#define __aeabi_ldivmod own_ldivmod
#define __aeabi_uidivmod own_uidivmod
#define __aeabi_idivmod own_idivmod
#define __aeabi_uidiv own_uidiv
#define __aeabi_idiv own_idiv
#define __aeabi_l2d own_l2d
#define __aeabi_ul2d own_ul2d
#define __aeabi_l2f own_l2f
#define __aeabi_ul2f own_ul2f
#define __aeabi_d2lz own_d2lz
#define __aeabi_d2ulz own_d2ulz
#define __aeabi_f2lz own_f2lz
#define __aeabi_f2ulz own_f2ulz
#include "arithmetic_arm.c"

static uint64_t state = 88172645463325252u;
static int wrong;

/* Random numbers of all magnitudes. */
static uint64_t next(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state >> (state % 64);
}

#define SAME(found, wanted)                      \
  do {                                           \
    if ((found) != (wanted) && wrong++ < 9) {    \
      printf("line %d: %s\n", __LINE__, #found); \
    }                                            \
  } while (0)

static void divide(uint64_t a, uint64_t b) {
  pair u = own_uldivmod(a, b);
  SAME(u[0], a / b);
  SAME(u[1], a % b);
  int64_t sa = (int64_t)a, sb = (int64_t)b;
  if (sa != INT64_MIN) {
    pair s = own_ldivmod(sa, sb);
    SAME((int64_t)s[0], sa / sb);
    SAME((int64_t)s[1], sa % sb);
  }
  uint32_t c = (uint32_t)a, d = (uint32_t)b ? (uint32_t)b : 1;
  int32_t sc = (int32_t)c / 2, sd = (int32_t)d;
  SAME(own_uidiv(c, d), c / d);
  SAME(own_idiv(sc, sd), sc / sd);
  SAME(own_uidivmod(c, d), (uint64_t)(c % d) << 32 | (c / d));
  SAME(own_idivmod(sc, sd), (uint64_t)(uint32_t)(sc % sd) << 32 | (uint32_t)(sc / sd));
}

static void convert(uint64_t x) {
  int64_t s = (int64_t)x;
  SAME(own_ul2d(x), (double)x);
  SAME(own_l2d(s), (double)s);
  SAME(own_ul2f(x), (float)x);
  SAME(own_l2f(s), (float)s);
  double d = (double)s / 3;
  SAME(own_d2lz(d), (int64_t)d);
  SAME(own_f2lz((float)d), (int64_t)(float)d);
  SAME(own_d2ulz(fabs(d)), (uint64_t)fabs(d));
  SAME(own_f2ulz((float)fabs(d)), (uint64_t)(float)fabs(d));
}

int main(void) {
  for (int i = 0; i < 300000; i++) {
    uint64_t b = next();
    divide(next(), b ? b : 1), convert(next());
  }
  pair zero = own_uldivmod(7, 0);
  SAME(zero[0], 0);
  SAME(own_idiv(7, 0), 0);
  SAME(own_ldivmod(-7, 0)[0], 0);
  SAME(own_d2lz(NAN), 0);
  SAME(own_d2lz(1e30), INT64_MAX);
  SAME(own_d2lz(-1e30), INT64_MIN);
  SAME(own_d2ulz(1e30), UINT64_MAX);
  SAME(own_d2ulz(-1), 0);
  puts(wrong ? "wrong" : "fine");
  return wrong != 0;
}
