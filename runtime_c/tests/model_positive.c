#include "models.h"

enum { N, K, SLOTS };

static int32_t run(cuvil_frame *frame) {
  const float *x = frame->io[0];
  float *found = frame->api->allocate(frame, frame->dims[N] * (int64_t)sizeof(float));
  float *unused = frame->api->allocate(frame, 100);
  int64_t count = 0;
  if (!found || !unused) return CUVIL_OUT_OF_MEMORY;
  for (int64_t i = 0; i < frame->dims[N]; i++) {
    if (x[i] > 0) found[count++] = x[i];
  }
  ((void **)frame->io)[1] = found;
  frame->dims[K] = count;
  return CUVIL_OK;
}

static int32_t prepare(int64_t *dims) {
  dims[K] = -1;
  return 0;
}

static const int64_t input_dims[] = {-1 - N}, output_dims[] = {-1 - K};
static const cuvil_tensor_info input = {"x", input_dims, CUVIL_F32, 1, {0}};
static const cuvil_tensor_info output = {"positive", output_dims, CUVIL_F32, 1, {0}};
static const char *const symbols[] = {"N"};
static const int64_t bounds[] = {0, 1000};
static const cuvil_variant variant = {"baseline", 0, run, 0};

const cuvil_artefact positive_artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "positive",
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
};
