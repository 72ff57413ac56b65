/* The functions of the tests' custom operators. Each checks that what it writes overlaps nothing
 * that it reads, and fills its result with garbage before it looks at the operands. */
#include <math.h>
#include <stdint.h>
#include <string.h>

static int64_t count(const int64_t *dims, int64_t rank) {
  int64_t n = 1;
  for (int64_t i = 0; i < rank; i++) n *= dims[i];
  return n;
}

static int overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

/* z = x * gain + y; fails with the last extent where mode says so. */
#define BLEND(name, type)                                                             \
  int32_t name(const type *x, const int64_t *x_dims, int64_t x_rank, const type *y,   \
               const int64_t *y_dims, int64_t y_rank, type *z, const int64_t *z_dims, \
               int64_t z_rank, double gain, const char *mode) {                       \
    int64_t n = count(x_dims, x_rank);                                                \
    uint64_t bytes = (uint64_t)n * sizeof *x;                                         \
    if (overlap(z, bytes, x, bytes) || overlap(z, bytes, y, bytes)) return 100;       \
    if (count(y_dims, y_rank) != n || count(z_dims, z_rank) != n) return 101;         \
    memset(z, 0xff, bytes);                                                           \
    for (int64_t i = 0; i < n; i++) z[i] = (type)(x[i] * (type)gain + y[i]);          \
    return strcmp(mode, "fail") ? 0 : (int32_t)-x_dims[x_rank - 1];                   \
  }

BLEND(acme_blend_f32, float)
BLEND(acme_blend_f64, double)
BLEND(acme_blend_i32, int32_t)

/* low, high: sums of x below and from `edges` on, row by row; weights may be absent. */
int32_t acme_sums(const float *x, const int64_t *x_dims, int64_t x_rank, const float *weights,
                  const int64_t *weights_dims, int64_t weights_rank, float *low,
                  const int64_t *low_dims, int64_t low_rank, int64_t *places,
                  const int64_t *places_dims, int64_t places_rank, const double *edges,
                  int64_t edges_count, const int64_t *ints, int64_t ints_count, int64_t flag,
                  const char *const *names, int64_t names_count) {
  if (x_rank != 2 || low_rank != 1 || places_rank != 1 || edges_count != 2) return 1;
  if (!weights != !weights_dims || (weights && weights_rank != 1)) return 2;
  if (places_dims[0] != ints_count || names_count != 2 || strcmp(names[1], "zwei")) return 3;
  if (weights && weights_dims[0] != x_dims[1]) return 4;
  for (int64_t r = 0; r < low_dims[0]; r++) {
    low[r] = flag ? 0 : 1000;
    for (int64_t c = 0; c < x_dims[1]; c++) {
      float v = x[r * x_dims[1] + c];
      if (v >= edges[0] && v < edges[1]) low[r] += v * (weights ? weights[c] : 1);
    }
  }
  for (int64_t i = 0; i < ints_count; i++) places[i] = ints[i];
  return 0;
}

/* y: the weighted sum of any number of tensors. */
int32_t acme_join(const float *weights, const int64_t *weights_dims, int64_t weights_rank,
                  const float *const *xs, const int64_t *const *xs_dims, const int64_t *xs_ranks,
                  int64_t xs_count, float *y, const int64_t *y_dims, int64_t y_rank) {
  if (weights_rank != 1 || weights_dims[0] != xs_count) return 1;
  int64_t n = count(y_dims, y_rank);
  for (int64_t k = 0; k < xs_count; k++) {
    if (count(xs_dims[k], xs_ranks[k]) != n) return 2;
    if (overlap(y, (uint64_t)n * sizeof *y, xs[k], (uint64_t)n * sizeof *y)) return 3;
  }
  for (int64_t i = 0; i < n; i++) {
    y[i] = 0;
    for (int64_t k = 0; k < xs_count; k++) y[i] += weights[k] * xs[k][i];
  }
  return 0;
}
