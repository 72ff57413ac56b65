/* One model from open to close: shapes bound and checked, memory asked for and given. */
#include <malloc.h>
#include <stdlib.h>

#include "check.h"
#include "models.h"

static float x[300], y[300], z[300];

static void fill(void) {
  for (int i = 0; i < 300; i++) {
    x[i] = (float)i;
    y[i] = 1000.0f - 3.0f * (float)i;
    z[i] = 0;
  }
}

static int sum_is_right(int count) {
  for (int i = 0; i < count; i++) {
    if (z[i] != x[i] + y[i]) return 0;
  }
  return 1;
}

static cuvil_model *open_add(int threads) {
  cuvil_options options = CUVIL_OPTIONS_INIT;
  cuvil_model *model = NULL;
  options.threads = threads;
  CHECK(cuvil_model_open(&add_artefact, &options, &model) == CUVIL_OK);
  return model;
}

static cuvil_status add(cuvil_model *model, cuvil_context *context, int64_t n, int64_t m,
                        cuvil_value *output) {
  cuvil_value inputs[] = {cuvil_tensor(CUVIL_F32, x, 2, (int64_t[]){n, 3}),
                          cuvil_tensor(CUVIL_F32, y, 2, (int64_t[]){m, 3})};
  fill();
  return cuvil_run(model, context, inputs, output);
}

static void test_any_shape(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  for (int64_t n = 1; n <= 100; n += 33) {
    cuvil_value output = cuvil_output(z, sizeof z);
    CHECK(add(model, context, n, n, &output) == CUVIL_OK);
    CHECK(output.rank == 2 && output.shape[0] == n && output.shape[1] == 3);
    CHECK(output.dtype == CUVIL_F32 && sum_is_right((int)n * 3));
  }
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void test_wrong_inputs(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  cuvil_value output = cuvil_output(z, sizeof z);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  const char *message = cuvil_context_message(context);

  CHECK(add(model, context, 5, 7, &output) == CUVIL_SHAPE_MISMATCH);
  CHECK_TEXT(message, "input 'y': dim 0 (N) is 7, but 5 in dim 0 of input 'x'");
  CHECK(add(model, context, 0, 0, &output) == CUVIL_SHAPE_MISMATCH);
  CHECK_TEXT(message, "input 'x': dim 0 (N) is 0, outside of 1 to 100000");
  CHECK(add(model, context, 13, 13, &output) == CUVIL_SHAPE_MISMATCH);
  CHECK_TEXT(message, "the shapes do not fit at Identity_0 (N = 13)");

  int64_t shape[] = {5, 4};
  cuvil_value inputs[] = {cuvil_tensor(CUVIL_F32, x, 2, shape),
                          cuvil_tensor(CUVIL_F32, y, 2, shape)};
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_SHAPE_MISMATCH);
  CHECK_TEXT(message, "input 'x': dim 1 is 4, expected 3");
  inputs[0].dtype = CUVIL_F64;
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_DTYPE_MISMATCH);
  CHECK_TEXT(message, "input 'x': expected float32, got float64");
  inputs[0].dtype = CUVIL_F32;
  inputs[0].rank = 1;
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_RANK_MISMATCH);
  CHECK_TEXT(message, "input 'x': expected rank 2, got 1");
  inputs[0] = cuvil_tensor(CUVIL_F32, NULL, 2, (int64_t[]){5, 3});
  inputs[1].shape[1] = 3;
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "input 'x': no data");
  inputs[0].data = (char *)x + 1;
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "not aligned");
  inputs[0].data = x;
  inputs[0].strides = (int64_t[]){1, 5};
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "not dense");
  inputs[0].strides = (int64_t[]){3, 1};
  inputs[0].capacity = 59;
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "59 bytes given, 60 needed");
  inputs[0].capacity = 60;
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_OK);
  CHECK(add(model, context, 4, 4, &output) == CUVIL_OK); /* a failure leaves nothing behind */

  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void test_output_too_small(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  cuvil_value output = cuvil_output(z, 100);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  CHECK(add(model, context, 20, 20, &output) == CUVIL_NEED_MEMORY);
  CHECK(output.capacity == 240);
  CHECK_TEXT(cuvil_context_message(context), "output 'z': 240 bytes needed, 100 given");
  CHECK(add(model, context, 20, 20, &output) == CUVIL_OK && sum_is_right(60));
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void test_output_in_memory_of_the_runtime(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  cuvil_value output = cuvil_output(NULL, 0);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  for (int64_t rows = 1; rows < 100; rows += 40) {
    CHECK(add(model, context, rows, rows, &output) == CUVIL_OK && output.borrowed);
    CHECK(output.capacity == 12 * (uint64_t)rows && output.shape[0] == rows);
    CHECK(((float *)output.data)[3 * rows - 1] == x[3 * rows - 1] + y[3 * rows - 1]);
  }
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

/* Memory of the caller's, exactly as large as asked for, at any address. */
static void test_memory_of_the_caller(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  cuvil_value output = cuvil_output(z, sizeof z);
  size_t small, large;
  CHECK(cuvil_context_size(model, (int64_t[]){1}, &small) == CUVIL_OK);
  CHECK(cuvil_context_size(model, NULL, &large) == CUVIL_OK);
  CHECK(large - small == 12 * (100000 - 1));
  char *memory = malloc(small + 1200 + 1);
  CHECK(cuvil_context_init(model, memory + 1, 64, &context) == CUVIL_NEED_MEMORY);
  CHECK(cuvil_context_init(model, memory + 1, small, &context) == CUVIL_OK);
  CHECK(add(model, context, 1, 1, &output) == CUVIL_OK);
  CHECK(add(model, context, 100, 100, &output) == CUVIL_NEED_MEMORY);
  size_t needed = cuvil_context_needed(context);
  CHECK(needed == small + 12 * 99);
  cuvil_context_destroy(context);
  CHECK(cuvil_context_init(model, memory + 1, needed, &context) == CUVIL_OK);
  CHECK(add(model, context, 100, 100, &output) == CUVIL_OK && sum_is_right(300));
  cuvil_context_destroy(context);
  free(memory);
  cuvil_model_close(model);
}

static void test_runs_allocate_nothing(void) {
  cuvil_model *model = open_add(2);
  cuvil_context *context;
  cuvil_value output = cuvil_output(z, sizeof z);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  CHECK(add(model, context, 100, 100, &output) == CUVIL_OK);
  size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100; i++)
    CHECK(add(model, context, 100 - i % 2, 100 - i % 2, &output) == CUVIL_OK);
  CHECK(mallinfo2().uordblks == before);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void test_shapes_without_a_run(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  cuvil_value inputs[] = {cuvil_tensor(CUVIL_F32, NULL, 2, (int64_t[]){7, 3}),
                          cuvil_tensor(CUVIL_F32, NULL, 2, (int64_t[]){7, 3})};
  cuvil_value output = cuvil_output(NULL, 0);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  CHECK(cuvil_shapes(model, context, inputs, &output) == CUVIL_OK);
  CHECK(output.rank == 2 && output.shape[0] == 7 && output.capacity == 84);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void test_variants(void) {
  char message[200];
  cuvil_options options = CUVIL_OPTIONS_INIT;
  cuvil_model *model = open_add(1);
  CHECK(!strcmp(cuvil_model_variant(model), "plain"));
  cuvil_model_close(model);
  options.message = message;
  options.message_bytes = sizeof message;
  options.variant = "baseline";
  CHECK(cuvil_model_open(&add_artefact, &options, &model) == CUVIL_OK);
  CHECK(!strcmp(cuvil_model_variant(model), "baseline"));
  cuvil_model_close(model);
  options.variant = "future";
  CHECK(cuvil_model_open(&add_artefact, &options, &model) == CUVIL_UNSUPPORTED_CPU);
  CHECK_TEXT(message, "variant 'future' of 'add' needs cpu features that are missing here: future");
  options.variant = "none";
  CHECK(cuvil_model_open(&add_artefact, &options, &model) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "'add' has no variant 'none'");
}

static void test_bad_artefacts(void) {
  cuvil_model *model;
  cuvil_artefact bad = add_artefact;
  bad.magic = 0;
  CHECK(cuvil_model_open(&bad, NULL, &model) == CUVIL_BAD_ARTEFACT && !model);
  bad = add_artefact;
  bad.abi_version++;
  CHECK(cuvil_model_open(&bad, NULL, &model) == CUVIL_BAD_ARTEFACT);
  bad = add_artefact;
  bad.dim_count = 0;
  CHECK(cuvil_model_open(&bad, NULL, &model) == CUVIL_BAD_ARTEFACT);
  bad = add_artefact;
  bad.arena_bytes = -100;
  CHECK(cuvil_model_open(&bad, NULL, &model) == CUVIL_BAD_ARTEFACT);
  CHECK(cuvil_model_open(NULL, NULL, &model) == CUVIL_INVALID_ARGUMENT);
}

static void test_failing_kernel_is_named(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  cuvil_value output = cuvil_output(z, sizeof z);
  cuvil_value inputs[] = {cuvil_tensor(CUVIL_F32, x, 2, (int64_t[]){2, 3}),
                          cuvil_tensor(CUVIL_F32, y, 2, (int64_t[]){2, 3})};
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  y[0] = -666.0f;
  CHECK(cuvil_run(model, context, inputs, &output) == CUVIL_INDEX_OUT_OF_RANGE);
  CHECK_TEXT(cuvil_context_message(context), "index out of range at add\tAdd_1");
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void test_profile(void) {
  cuvil_model *model = open_add(1);
  cuvil_context *context;
  cuvil_value output = cuvil_output(z, sizeof z);
  cuvil_profile_row rows[3];
  cuvil_profile profile = {rows, 3, 0};
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  cuvil_context_set_profile(context, &profile);
  CHECK(add(model, context, 9, 9, &output) == CUVIL_OK);
  CHECK(profile.count == 2 && rows[0].site == 0 && rows[1].site == 1);
  CHECK(rows[0].begin_ns <= rows[0].end_ns && rows[0].end_ns <= rows[1].begin_ns);
  CHECK(add(model, context, 9, 9, &output) == CUVIL_OK);
  CHECK(profile.count == 4 && rows[0].site == 1); /* the ring went round */
  cuvil_context_set_profile(context, NULL);
  CHECK(add(model, context, 9, 9, &output) == CUVIL_OK && profile.count == 4);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

int main(void) {
  test_any_shape();
  test_wrong_inputs();
  test_output_too_small();
  test_output_in_memory_of_the_runtime();
  test_memory_of_the_caller();
  test_runs_allocate_nothing();
  test_shapes_without_a_run();
  test_variants();
  test_bad_artefacts();
  test_failing_kernel_is_named();
  test_profile();
  return check_result();
}
