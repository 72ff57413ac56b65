/* Two sequences and two optionals: see models.h. */
#include "models.h"

enum { N, SLOTS };

/* tensors: items[0], items[1], shift | sums[0], sums[1], kept */
static int32_t run(cuvil_frame *frame) {
  float shift = *(const float *)frame->io[2];
  for (int item = 0; item < 2; item++) {
    int64_t count = item ? 2 : frame->dims[N];
    const float *x = frame->io[item];
    float *sum = frame->io[3 + item];
    for (int64_t i = 0; i < count; i++) sum[i] = x[i] + shift;
  }
  *(float *)frame->io[5] = shift;
  return CUVIL_OK;
}

static int32_t prepare(int64_t *dims) {
  (void)dims;
  return 0;
}

static const int64_t first[] = {-1 - N}, second[] = {2};
static const cuvil_tensor_info inputs[] = {{"items[0]", first, CUVIL_F32, 1, {0}},
                                           {"items[1]", second, CUVIL_F32, 1, {0}},
                                           {"shift", NULL, CUVIL_F32, 0, {0}}};
static const cuvil_tensor_info outputs[] = {{"sums[0]", first, CUVIL_F32, 1, {0}},
                                            {"sums[1]", second, CUVIL_F32, 1, {0}},
                                            {"kept", NULL, CUVIL_F32, 0, {0}}};
static const cuvil_port_info input_ports[] = {{"items", 2, CUVIL_SEQUENCE, 0, {0}},
                                              {"mask", 0, CUVIL_NONE, 1, {0}},
                                              {"shift", 1, CUVIL_TENSOR, 1, {0}}};
static const cuvil_port_info output_ports[] = {{"sums", 2, CUVIL_SEQUENCE, 0, {0}},
                                               {"kept", 1, CUVIL_TENSOR, 1, {0}},
                                               {"dropped", 0, CUVIL_NONE, 1, {0}}};
static const cuvil_port_list ports = {3, 3, input_ports, output_ports};
static const char *const symbols[] = {"N"};
static const int64_t bounds[] = {0, 1000};
static const cuvil_variant variant = {"baseline", 0, run, 0};

const cuvil_artefact pairs_artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "pairs",
    .producer = "hand",
    .input_count = 3,
    .output_count = 3,
    .inputs = inputs,
    .outputs = outputs,
    .symbol_count = 1,
    .dim_count = SLOTS,
    .symbol_names = symbols,
    .symbol_bounds = bounds,
    .prepare = prepare,
    .variant_count = 1,
    .variants = &variant,
    .has_ports = 1,
    .ports = &ports,
};
