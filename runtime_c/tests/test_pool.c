/* Pools: right results with any thread count, shared between models and threads, across fork. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "models.h"

enum { ROWS = 5000, RUNS = 200 };

static float x[ROWS * 3], y[ROWS * 3];

static cuvil_model *open_with(const cuvil_pool *pool, int threads) {
  cuvil_options options = CUVIL_OPTIONS_INIT;
  cuvil_model *model = NULL;
  options.pool = pool;
  options.threads = threads;
  CHECK(cuvil_model_open(&add_artefact, &options, &model) == CUVIL_OK);
  return model;
}

static int run_once(const cuvil_model *model, cuvil_context *context, float *z, int64_t rows) {
  int64_t shape[] = {rows, 3};
  cuvil_value in[] = {cuvil_tensor(CUVIL_F32, x, 2, shape), cuvil_tensor(CUVIL_F32, y, 2, shape)};
  cuvil_value out = cuvil_output(z, ROWS * 3 * sizeof(float));
  memset(z, 0, (size_t)rows * 3 * sizeof(float));
  if (cuvil_run(model, context, in, &out)) return 0;
  for (int64_t i = 0; i < rows * 3; i++) {
    if (z[i] != x[i] + y[i]) return 0;
  }
  return 1;
}

static void *run_many(void *argument) {
  const cuvil_model *model = argument;
  float *z = malloc(ROWS * 3 * sizeof(float));
  cuvil_context *context;
  int good = 1;
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  for (int i = 0; i < RUNS; i++) good &= run_once(model, context, z, 1 + (i * 37) % ROWS);
  cuvil_context_destroy(context);
  free(z);
  return good ? argument : NULL;
}

static void test_thread_counts(void) {
  for (int threads = 1; threads <= 8; threads++) {
    const cuvil_pool *pool;
    CHECK(cuvil_pool_create(threads, &pool) == CUVIL_OK);
    cuvil_model *model = open_with(pool, 0);
    CHECK(cuvil_model_threads(model) == threads);
    CHECK(run_many(model));
    cuvil_pool_release(pool); /* the model holds it still */
    CHECK(run_many(model));
    cuvil_model_close(model);
  }
}

/* Runs at the same time on one pool: one has it, the others work alone. */
static void test_concurrent_runs(void) {
  const cuvil_pool *pool;
  pthread_t threads[4];
  CHECK(cuvil_pool_create(3, &pool) == CUVIL_OK);
  cuvil_model *a = open_with(pool, 0), *b = open_with(pool, 2);
  CHECK(cuvil_model_threads(b) == 2);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run_many, i % 2 ? a : b);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(threads[i], &result);
    CHECK(result);
  }
  cuvil_model_close(a);
  cuvil_model_close(b);
  cuvil_pool_release(pool);
}

static void test_default_pool(void) {
  setenv("CUVIL_NUM_THREADS", "3", 1);
  CHECK(cuvil_default_threads() == 3);
  cuvil_model *a = open_with(NULL, 0), *b = open_with(NULL, 5), *c = open_with(NULL, 1);
  CHECK(cuvil_model_threads(a) == 3 && cuvil_model_threads(b) == 5 && cuvil_model_threads(c) == 1);
  CHECK(run_many(a) && run_many(b) && run_many(c));
  cuvil_model_close(b);
  cuvil_model_close(a);
  cuvil_model_close(c);
  a = open_with(NULL, 0); /* a new pool after the last one ended */
  CHECK(run_many(a));
  cuvil_model_close(a);
  setenv("CUVIL_NUM_THREADS", "", 1);
  CHECK(cuvil_default_threads() >= 1);
  unsetenv("CUVIL_NUM_THREADS");
}

static void test_threads_that_are_no_number(void) {
  static const char *const words[] = {"many", "4x", "0", "-1", " 2"};
  char message[160];
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.message = message, options.message_bytes = sizeof message;
  for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
    cuvil_model *model;
    const cuvil_pool *pool;
    setenv("CUVIL_NUM_THREADS", words[i], 1);
    CHECK(cuvil_default_threads() == 0);
    CHECK(cuvil_pool_create(0, &pool) == CUVIL_INVALID_ARGUMENT);
    CHECK(cuvil_model_open(&add_artefact, &options, &model) == CUVIL_INVALID_ARGUMENT);
    CHECK(strstr(message, "CUVIL_NUM_THREADS is '") && strstr(message, words[i]));
    CHECK(cuvil_pool_create(2, &pool) == CUVIL_OK); /* who says how many does not ask */
    cuvil_pool_release(pool);
  }
  setenv("CUVIL_NUM_THREADS", "99999999999", 1);
  CHECK(cuvil_default_threads() > 0);
  unsetenv("CUVIL_NUM_THREADS");
}

static void *open_and_close(void *argument) {
  for (int i = 0; i < 20; i++) cuvil_model_close(open_with(NULL, 2));
  return argument;
}

static void test_open_from_many_threads(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, open_and_close, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

#if !defined(__SANITIZE_THREAD__) /* its runtime allows no threads in a fork's child */
static void test_fork(void) {
  cuvil_model *model = open_with(NULL, 3);
  CHECK(run_many(model));
  pid_t child = fork();
  if (!child) {
    alarm(60);
    int good = run_many(model) != NULL;
    cuvil_model_close(model);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(run_many(model));
  cuvil_model_close(model);
}
#endif

typedef struct visits {
  atomic_int count[4];
} visits;

static void visit(void *argument, int32_t worker) {
  atomic_fetch_add(&((visits *)argument)->count[worker], 1);
}

/* The contract of cuvil_pool::run, which a program may also implement itself. */
static int cpus[2]; /* of the caller and of its worker, in one job */

static void look_where(void *argument, int32_t worker) {
  cpus[worker] = sched_getcpu();
  atomic_fetch_add((atomic_int *)argument, 1);
  for (int i = 0; i < 2000000 && atomic_load((atomic_int *)argument) < 2; i++) sched_yield();
}

/* Also after a worker slept: nobody waits for a cpu while another is free. */
static void test_workers_keep_off_the_callers_cpu(void) {
  const cuvil_pool *pool;
  cpu_set_t allowed;
  int together = 0, apart = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2) return;
  CHECK(cuvil_pool_create(2, &pool) == CUVIL_OK);
  for (int i = 0; i < 40; i++) {
    atomic_int there = 0;
    if (i % 4 == 0) usleep(3000);
    CHECK(!pool->run(pool->state, look_where, &there, 2));
    if (i < 8 || atomic_load(&there) < 2) continue; /* not awake yet, or too late for this job */
    cpus[0] == cpus[1] ? together++ : apart++;
  }
  CHECK(together <= apart / 4); /* a caller may move while a job runs */
  cuvil_pool_release(pool);
}

static void test_interface(void) {
  const cuvil_pool *pool;
  CHECK(cuvil_pool_create(4, &pool) == CUVIL_OK);
  CHECK(pool->threads(pool->state) == 4);
  for (int i = 0; i < 1000; i++) {
    visits seen = {{0}};
    CHECK(pool->run(pool->state, visit, &seen, 3) == 0);
    CHECK(seen.count[0] == 1 && seen.count[1] <= 1 && seen.count[2] <= 1 && seen.count[3] == 0);
  }
  cuvil_pool_release(pool);
}

int main(void) {
  for (int i = 0; i < ROWS * 3; i++) {
    x[i] = (float)i;
    y[i] = (float)(i % 7);
  }
  test_interface();
  test_thread_counts();
  test_concurrent_runs();
  test_default_pool();
  test_threads_that_are_no_number();
  test_open_from_many_threads();
  test_workers_keep_off_the_callers_cpu();
#if !defined(__SANITIZE_THREAD__)
  test_fork();
#endif
  return check_result();
}
