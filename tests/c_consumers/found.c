/* Outputs whose extents the run finds, with and without a bound; shapes that do not fit. */
#include <string.h>

#include "check.h"
#include "found.h"
#include "steps.h"

static void one_call(void) {
  const float x[4] = {1, -2, 3, -4};
  float y[4] = {0}, pairs[4];
  int64_t shape[1] = {-1};
  CHECK(found_inference(4, x, y, pairs, shape) == CUVIL_OK);
  CHECK(shape[0] == 2 && y[0] == 1 && y[1] == 3 && pairs[3] == -4);
  CHECK(found_inference(2, x + 2, y, pairs, NULL) == CUVIL_OK && y[0] == 3);
  CHECK(found_inference(3, x, y, pairs, shape) == CUVIL_SHAPE_MISMATCH); /* odd */
  CHECK(found_inference(0, x, y, pairs, shape) == CUVIL_OK && shape[0] == 0);
}

static void bounded(void) {
  const float x[6] = {-1, 2, -3, 4, 5, 6};
  float y[6], pairs[6];
  found_model *model;
  found_context *context;
  CHECK(found_open(NULL, &model) == CUVIL_OK);
  CHECK(found_context_create(model, &context) == CUVIL_OK);
  int64_t six = 6, five = 5;
  cuvil_value input = cuvil_tensor(CUVIL_F32, x, 1, &six), outputs[2];
  CHECK(found_shapes(model, context, &input, outputs) == CUVIL_OK);
  CHECK(outputs[0].shape[0] == 6 && outputs[0].capacity == sizeof y); /* its bound */
  outputs[0] = cuvil_output(y, sizeof y);
  outputs[1] = cuvil_output(pairs, sizeof pairs);
  CHECK(found_run(model, context, &input, outputs) == CUVIL_OK);
  CHECK(outputs[0].shape[0] == 4 && y[3] == 6 && outputs[1].shape[1] == 3);
  outputs[0] = cuvil_output(y, 4 * sizeof *y); /* enough for this run, not for every one */
  CHECK(found_run(model, context, &input, outputs) == CUVIL_NEED_MEMORY);
  input = cuvil_tensor(CUVIL_F32, x, 1, &five);
  outputs[0] = cuvil_output(y, sizeof y);
  CHECK(found_run(model, context, &input, outputs) == CUVIL_SHAPE_MISMATCH);
  CHECK(strstr(found_context_message(context), "n = 5"));
  found_context_destroy(context);
  found_close(model);
}

/* How many there are is asked for first, with no room for any. */
static void one_call_without_a_bound(void) {
  float limit = 3.5f, y[4];
  int64_t shape[1] = {-1};
  CHECK(steps_inference(&limit, NULL, 0, shape) == CUVIL_NEED_MEMORY && shape[0] == 4);
  CHECK(steps_inference(&limit, y, 3, shape) == CUVIL_NEED_MEMORY && shape[0] == 4);
  CHECK(steps_inference(&limit, y, 4, shape) == CUVIL_OK && shape[0] == 4 && y[3] == 3);
}

static void unbounded(void) {
  float limit = 3.5f, small[2];
  steps_model *model;
  steps_context *context;
  CHECK(steps_open(NULL, &model) == CUVIL_OK);
  CHECK(steps_context_create(model, &context) == CUVIL_OK);
  cuvil_value input = cuvil_tensor(CUVIL_F32, &limit, 0, NULL);
  cuvil_value output = cuvil_output(NULL, 0); /* the runtime's memory */
  CHECK(steps_run(model, context, &input, &output) == CUVIL_OK);
  CHECK(output.shape[0] == 4 && ((float *)output.data)[3] == 3);
  limit = 1000;
  CHECK(steps_run(model, context, &input, &output) == CUVIL_OK);
  CHECK(output.shape[0] == 1000 && ((float *)output.data)[999] == 999);
  output = cuvil_output(small, sizeof small);
  CHECK(steps_run(model, context, &input, &output) == CUVIL_NEED_MEMORY);
  CHECK(output.capacity == 1000 * sizeof(float));
  limit = 1e30f; /* no machine has that much */
  CHECK(steps_run(model, context, &input, &output) != CUVIL_OK);
  steps_context_destroy(context);
  steps_close(model);
}

int main(void) {
  one_call();
  bounded();
  unbounded();
  one_call_without_a_bound();
  puts("fine");
  return 0;
}
