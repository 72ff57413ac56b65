#include "models.h"

/* Copies 2 x 3 values of each narrow type: bfloat16, float16, bool. */
enum { TENSORS = 3 };

static int32_t run(cuvil_frame *frame) {
  static const int bytes[TENSORS] = {12, 12, 6};
  for (int t = 0; t < TENSORS; t++) {
    const char *from = frame->io[t];
    char *to = frame->io[TENSORS + t];
    for (int i = 0; i < bytes[t]; i++) to[i] = from[i];
  }
  return CUVIL_OK;
}

static const int64_t dims[] = {2, 3};
static const cuvil_tensor_info inputs[] = {{"b", dims, CUVIL_BF16, 2, {0}},
                                           {"h", dims, CUVIL_F16, 2, {0}},
                                           {"t", dims, CUVIL_BOOL, 2, {0}}};
static const cuvil_variant variant = {"baseline", 0, run, 0};

const cuvil_artefact half_artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "half",
    .input_count = TENSORS,
    .output_count = TENSORS,
    .inputs = inputs,
    .outputs = inputs,
    .variant_count = 1,
    .variants = &variant,
};
