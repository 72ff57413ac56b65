/* Two models in one program, on one pool of threads: runs of one and the other in turn, then both
 * at once, from two threads that ask for the pool. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "more.h"
#include "twice.h"

enum { ROWS = 64, COLUMNS = 96, RUNS = 20 };

#define CHECK(condition)                                       \
  do {                                                         \
    if (!(condition)) {                                        \
      printf("line %d: not true: %s\n", __LINE__, #condition); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

static float x[ROWS * COLUMNS];
static twice_model *twice;
static more_model *more;

static void *run_twice(void *unused) {
  static float y[ROWS * COLUMNS];
  twice_context *context;
  CHECK(twice_context_create(twice, &context) == CUVIL_OK);
  for (int run = 0; run < RUNS; run++) {
    memset(y, 0, sizeof y);
    cuvil_value input = cuvil_tensor(CUVIL_F32, x, 2, (const int64_t[]){ROWS, COLUMNS});
    cuvil_value output = cuvil_output(y, sizeof y);
    CHECK(twice_run(twice, context, &input, &output) == CUVIL_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(y[i] == 2 * x[i]);
  }
  twice_context_destroy(context);
  return unused;
}

static void *run_more(void *unused) {
  static float y[ROWS * COLUMNS];
  more_context *context;
  CHECK(more_context_create(more, &context) == CUVIL_OK);
  for (int run = 0; run < RUNS; run++) {
    memset(y, 0, sizeof y);
    cuvil_value input = cuvil_tensor(CUVIL_F32, x, 2, (const int64_t[]){ROWS, COLUMNS});
    cuvil_value output = cuvil_output(y, sizeof y);
    CHECK(more_run(more, context, &input, &output) == CUVIL_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(y[i] == 3 * x[i]);
  }
  more_context_destroy(context);
  return unused;
}

int main(void) {
  const cuvil_pool *pool;
  cuvil_options options = CUVIL_OPTIONS_INIT;
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 251) - 125;
  CHECK(twice_pool_create(3, &pool) == CUVIL_OK);
  options.pool = pool;
  CHECK(twice_open(&options, &twice) == CUVIL_OK && more_open(&options, &more) == CUVIL_OK);
  CHECK(twice_threads(twice) == 3 && more_threads(more) == 3);
  twice_pool_release(pool); /* both keep it */
  run_twice(NULL), run_more(NULL), run_twice(NULL);
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, run_more, NULL));
  run_twice(NULL);
  CHECK(!pthread_join(other, NULL));
  twice_close(twice);
  run_more(NULL);
  more_close(more);
  puts("fine");
  return 0;
}
