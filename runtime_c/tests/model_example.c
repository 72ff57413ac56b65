#include "models.h"

static int32_t run(cuvil_frame *frame) {
  const float *x = frame->io[0];
  float *y = frame->io[1];
  for (int i = 0; i < 4; i++) y[i] = 2 * x[i];
  return CUVIL_OK;
}

static const int64_t dims[] = {1, 4};
static const cuvil_tensor_info input = {"x", dims, CUVIL_F32, 2, {0}};
static const cuvil_tensor_info output = {"y", dims, CUVIL_F32, 2, {0}};
static const cuvil_variant variant = {"baseline", 0, run, 0};

const cuvil_artefact bert_artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "bert",
    .input_count = 1,
    .output_count = 1,
    .inputs = &input,
    .outputs = &output,
    .variant_count = 1,
    .variants = &variant,
};
