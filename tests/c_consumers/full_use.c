/* Everything that `dense.h` declares: memory of the caller, shapes, errors, a shared pool. */
#include <string.h>

#include "check.h"
#include "dense.h"

static const int64_t shape[] = {3, 8};
static float x[3 * 8], y[3 * 16];

static void run_in_own_memory(const dense_model *model) {
  dense_dims dims;
  dims.n = 3;
  size_t bytes, too_few = 16;
  CHECK(dense_context_size(model, &dims, &bytes) == CUVIL_OK && bytes > 0);
  char *memory = malloc(bytes);
  dense_context *context;
  CHECK(dense_context_init(model, memory, too_few, &context) == CUVIL_NEED_MEMORY);
  CHECK(dense_context_init(model, memory, bytes, &context) == CUVIL_OK);
  cuvil_value input = cuvil_tensor(CUVIL_F32, x, 2, shape), output = cuvil_output(y, sizeof y);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_OK);
  dense_context_destroy(context);
  free(memory);
}

static void ask_for_shapes(const dense_model *model, dense_context *context) {
  cuvil_value input = cuvil_tensor(CUVIL_F32, x, 2, shape), output = cuvil_output(NULL, 0);
  CHECK(dense_shapes(model, context, &input, &output) == CUVIL_OK);
  CHECK(output.shape[0] == 3 && output.shape[1] == 16 && output.capacity == sizeof y);
  output = cuvil_output(y, 4);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_NEED_MEMORY);
  CHECK(output.capacity == sizeof y);
}

static void make_mistakes(const dense_model *model, dense_context *context) {
  const int64_t wrong[] = {3, 7};
  cuvil_value output = cuvil_output(y, sizeof y);
  cuvil_value input = cuvil_tensor(CUVIL_F64, x, 2, shape);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_DTYPE_MISMATCH);
  CHECK(strstr(dense_context_message(context), "'x'"));
  input = cuvil_tensor(CUVIL_F32, x, 2, wrong);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_SHAPE_MISMATCH);
  input = cuvil_tensor(CUVIL_F32, x, 1, wrong);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_RANK_MISMATCH);
  CHECK(!strcmp(dense_status_text(CUVIL_OK), "ok"));
}

static void watch_a_run(const dense_model *model, dense_context *context) {
  cuvil_value input = cuvil_tensor(CUVIL_F32, x, 2, shape), output = cuvil_output(y, sizeof y);
  cuvil_profile_row rows[8];
  cuvil_profile profile = {rows, 8, 0};
  dense_context_set_profile(context, &profile);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_OK && profile.count == 1);
  CHECK(rows[0].end_ns >= rows[0].begin_ns && dense_artefact.sites[rows[0].site]);
  dense_context_set_profile(context, NULL);
  dense_context_set_time_limit(context, INT64_MAX / 2);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_OK);
  dense_context_cancel(context);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_CANCELLED);
  dense_context_cancel(context);
  dense_context_uncancel(context);
  CHECK(dense_run(model, context, &input, &output) == CUVIL_OK);
}

int main(void) {
  const cuvil_pool *pool;
  cuvil_options options = CUVIL_OPTIONS_INIT;
  char message[200] = "";
  CHECK(dense_pool_create(2, &pool) == CUVIL_OK);
  options.pool = pool;
  options.message = message;
  options.message_bytes = sizeof message;

  dense_model *model;
  dense_context *context;
  options.variant = "none-such";
  CHECK(dense_open(&options, &model) == CUVIL_INVALID_ARGUMENT && strstr(message, "none-such"));
  options.variant = NULL;
  CHECK(dense_open(&options, &model) == CUVIL_OK);
  dense_pool_release(pool); /* the model keeps its own reference */
  CHECK(dense_threads(model) == 2 && dense_variant(model)[0]);
  CHECK(dense_context_create(model, &context) == CUVIL_OK);
  CHECK(dense_context_needed(context) < 1 << 20);
  CHECK(DENSE_WEIGHTS_BYTES == dense_artefact.weights_bytes);

  run_in_own_memory(model);
  ask_for_shapes(model, context);
  make_mistakes(model, context);
  watch_a_run(model, context);
  dense_context_destroy(context);
  dense_close(model);
  puts("fine");
  return 0;
}
