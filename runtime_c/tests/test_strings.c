/* A model of strings: its tasks ask for memory side by side; it stays until the next run. */
#include <stdlib.h>

#include "check.h"
#include "cuvil/cuvil.h"

enum { N, SLOTS, MOST = 2000 };

/* y[i] = x[i] twice */
static int32_t twice(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                     void *scratch) {
  cuvil_frame *frame = buffers[2];
  const cuvil_string *x = buffers[0];
  cuvil_string *y = buffers[1];
  (void)dims, (void)scratch;
  for (int64_t i = begin; i < end; i++) {
    int64_t size = x[i].size;
    char *made = frame->api->string_bytes(frame, 2 * size);
    if (!made) return CUVIL_OUT_OF_MEMORY;
    if (size) memcpy(made, x[i].data, (size_t)size);
    if (size) memcpy(made + size, x[i].data, (size_t)size);
    y[i] = (cuvil_string){made, 2 * size};
  }
  return CUVIL_OK;
}

static int32_t run(cuvil_frame *frame) {
  void *buffers[] = {frame->io[0], frame->io[1], frame};
  return frame->api->parallel_for(frame, twice, buffers, frame->dims[N], 0);
}

static int32_t prepare(int64_t *dims) {
  (void)dims;
  return 0;
}

static const int64_t dims_of[] = {-1 - N}, bounds[] = {0, MOST};
static const cuvil_tensor_info input = {"x", dims_of, CUVIL_STRING, 1, {0}};
static const cuvil_tensor_info output = {"y", dims_of, CUVIL_STRING, 1, {0}};
static const char *const symbols[] = {"N"}, *const sites[] = {"twice\ty"};
static const cuvil_variant variant = {"baseline", 0, run, 0};
static const cuvil_artefact artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "twice",
    .producer = "hand",
    .input_count = 1,
    .output_count = 1,
    .inputs = &input,
    .outputs = &output,
    .symbol_count = 1,
    .dim_count = SLOTS,
    .symbol_names = symbols,
    .symbol_bounds = bounds,
    .prepare = prepare,
    .variant_count = 1,
    .variants = &variant,
    .site_count = 1,
    .sites = sites,
};

static cuvil_string x[MOST], y[MOST];

static int is_twice(cuvil_string made, cuvil_string of) {
  size_t size = (size_t)of.size;
  return made.size == 2 * of.size &&
         (!size || (!memcmp(made.data, of.data, size) && !memcmp(made.data + size, of.data, size)));
}

static void run_many(const cuvil_model *model, cuvil_context *context) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
  for (int64_t count = MOST; count >= 0; count -= 333) {
    for (int64_t i = 0; i < count; i++) x[i] = (cuvil_string){letters + i % 13, i % 14};
    cuvil_value in = cuvil_tensor(CUVIL_STRING, x, 1, &count), out = cuvil_output(y, sizeof y);
    CHECK(cuvil_run(model, context, &in, &out) == CUVIL_OK && out.dtype == CUVIL_STRING);
    int good = 1;
    for (int64_t i = 0; i < count; i++) good &= is_twice(y[i], x[i]);
    CHECK(good);
  }
}

static void test_contexts(const cuvil_model *model) {
  cuvil_context *context;
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  run_many(model, context);
  cuvil_context_destroy(context);
  size_t bytes; /* memory of the caller's holds no strings: those are the runtime's still */
  CHECK(cuvil_context_size(model, NULL, &bytes) == CUVIL_OK);
  void *memory = malloc(bytes);
  CHECK(cuvil_context_init(model, memory, bytes, &context) == CUVIL_OK);
  run_many(model, context);
  cuvil_context_destroy(context);
  free(memory);
}

static void test_what_is_no_string(const cuvil_model *model) {
  cuvil_context *context;
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  int64_t two = 2;
  cuvil_value in = cuvil_tensor(CUVIL_STRING, x, 1, &two), out = cuvil_output(y, sizeof y);
  x[0] = (cuvil_string){NULL, 0}, x[1] = (cuvil_string){NULL, 1};
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(cuvil_context_message(context), "input 'x': string 1 is of size 1 and has no data");
  x[1] = (cuvil_string){"x", -1};
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_INVALID_ARGUMENT);
  in.dtype = CUVIL_I64;
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_DTYPE_MISMATCH);
  CHECK_TEXT(cuvil_context_message(context), "input 'x': expected string, got int64");
  in.dtype = CUVIL_STRING, in.data = (char *)x + 4;
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_INVALID_ARGUMENT);
  CHECK(cuvil_dtype_align(CUVIL_STRING) == 8 && cuvil_dtype_size(CUVIL_STRING) == 16);
  cuvil_context_destroy(context);
}

int main(void) {
  cuvil_options options = CUVIL_OPTIONS_INIT;
  cuvil_model *model;
  for (options.threads = 1; options.threads <= 4; options.threads += 3) {
    CHECK(cuvil_model_open(&artefact, &options, &model) == CUVIL_OK);
    test_contexts(model);
    test_what_is_no_string(model);
    cuvil_model_close(model);
  }
  return check_result();
}
