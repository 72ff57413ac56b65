#include "models.h"

static int32_t run(cuvil_frame *frame) {
  const float *x = frame->io[0], *weights = (const float *)frame->weights;
  float *y = frame->io[1];
  for (int64_t i = 0; i < frame->dims[0]; i++) y[i] = x[i] * weights[0];
  return CUVIL_OK;
}

static int32_t prepare(int64_t *dims) {
  (void)dims;
  return 0;
}

static const int64_t row[] = {-1};
static const cuvil_tensor_info input = {"x", row, CUVIL_F32, 1, {0}};
static const cuvil_tensor_info output = {"y", row, CUVIL_F32, 1, {0}};
static const char *const symbols[] = {"N"};
static const int64_t bounds[] = {0, INT64_MAX};
static const cuvil_variant variant = {"baseline", 0, run, 0};

const cuvil_artefact scale_artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "scale",
    .producer = "hand",
    .build_id = {1, 2, 3},
    .input_count = 1,
    .output_count = 1,
    .inputs = &input,
    .outputs = &output,
    .symbol_count = 1,
    .dim_count = 1,
    .symbol_names = symbols,
    .symbol_bounds = bounds,
    .prepare = prepare,
    .weights_bytes = sizeof(float),
    .weights_file = "scale.weights",
    .variant_count = 1,
    .variants = &variant,
};
