/* The one-call form: many threads, first calls included, and what it refuses. */
#include "cuvil/simple.h"

#include <pthread.h>

#include "check.h"
#include "models.h"

enum { THREADS = 12, CALLS = 500, ROWS = 7 };

static cuvil_simple simple;

static cuvil_status add(int64_t rows, const float *x, const float *y, float *z) {
  int64_t shape[2] = {-1, -1}, extents[2] = {rows, -1};
  void *data[] = {(void *)x, (void *)y, z, shape};
  cuvil_status status = cuvil_simple_run(&add_artefact, &simple, extents, data);
  if (!status && (shape[0] != rows || shape[1] != 3)) return CUVIL_INTERNAL;
  return status;
}

static void *work(void *argument) {
  float x[ROWS * 3], y[ROWS * 3], z[ROWS * 3];
  float mine = (float)(intptr_t)argument;
  intptr_t wrong = 0;
  for (int call = 0; call < CALLS; call++) {
    int rows = 1 + call % ROWS;
    for (int i = 0; i < rows * 3; i++) x[i] = mine, y[i] = (float)i, z[i] = -1;
    wrong += add(rows, x, y, z) != CUVIL_OK;
    for (int i = 0; i < rows * 3; i++) wrong += z[i] != mine + (float)i;
  }
  return (void *)wrong;
}

int main(void) {
  pthread_t threads[THREADS];
  for (intptr_t t = 0; t < THREADS; t++) {
    CHECK(!pthread_create(&threads[t], NULL, work, (void *)t));
  }
  for (int t = 0; t < THREADS; t++) {
    void *wrong;
    CHECK(!pthread_join(threads[t], &wrong) && !wrong);
  }
  float x[3] = {1, 2, 3}, z[3];
  CHECK(add(1, x, x, z) == CUVIL_OK && z[2] == 6);
  CHECK(add(13, x, x, z) == CUVIL_SHAPE_MISMATCH); /* a condition of the model */
  CHECK(add(0, x, x, z) != CUVIL_OK);              /* below the bound */
  CHECK(add(-1, x, x, z) != CUVIL_OK);
  CHECK(add(1, NULL, x, z) == CUVIL_INVALID_ARGUMENT);
  CHECK(add(1, x, x, NULL) == CUVIL_INVALID_ARGUMENT);
  CHECK(add(1, x, x, z) == CUVIL_OK && z[0] == 2);
  return check_result();
}
