/* Eight threads call one model, each with inputs and a context of its own, and the one-call form.
 */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "stages.h"

enum { THREADS = 8, CALLS = 1000, INPUT = 16 * 8, OUTPUT = 16 * 16, TABLE = 2 * 3 };

static stages_model *model;

typedef struct job {
  float x[INPUT], expected[OUTPUT];
} job;

static void check_constant(const float *constant) {
  for (int i = 0; i < TABLE; i++) CHECK(constant[i] == (float)i);
}

static void *work(void *argument) {
  const job *mine = argument;
  static const int64_t shape[] = {16, 8};
  float y[OUTPUT], constant[TABLE];
  stages_context *context;
  CHECK(stages_context_create(model, &context) == CUVIL_OK);
  for (int i = 0; i < CALLS; i++) {
    memset(y, 0, sizeof y);
    memset(constant, 0, sizeof constant);
    if (i % 2) {
      CHECK(stages_inference(mine->x, y, constant) == CUVIL_OK);
    } else {
      cuvil_value input = cuvil_tensor(CUVIL_F32, mine->x, 2, shape);
      cuvil_value outputs[] = {cuvil_output(y, sizeof y), cuvil_output(constant, sizeof constant)};
      CHECK(stages_run(model, context, &input, outputs) == CUVIL_OK);
    }
    CHECK(!memcmp(y, mine->expected, sizeof y));
    check_constant(constant);
  }
  stages_context_destroy(context);
  return NULL;
}

int main(void) {
  static job jobs[THREADS];
  pthread_t threads[THREADS];
  float constant[TABLE];
  CHECK(stages_open(NULL, &model) == CUVIL_OK);
  for (int t = 0; t < THREADS; t++) {
    for (int i = 0; i < INPUT; i++) jobs[t].x[i] = (float)((i * (t + 3)) % 11) / 11;
    CHECK(stages_inference(jobs[t].x, jobs[t].expected, constant) == CUVIL_OK);
    CHECK(t == 0 || memcmp(jobs[t].expected, jobs[0].expected, sizeof jobs[0].expected));
  }
  for (int t = 0; t < THREADS; t++) CHECK(!pthread_create(&threads[t], NULL, work, &jobs[t]));
  for (int t = 0; t < THREADS; t++) CHECK(!pthread_join(threads[t], NULL));
  stages_close(model);
  puts("fine");
  return 0;
}
