#include "models.h"

/* Polls until input `go` is 1: for cancelling and time limits. */
static int32_t run(cuvil_frame *frame) {
  const volatile int32_t *go = frame->io[0];
  while (!*go) {
    int32_t status = frame->api->poll(frame);
    if (status) return status;
  }
  return CUVIL_OK;
}

static const cuvil_tensor_info input = {"go", NULL, CUVIL_I32, 0, {0}};
static const cuvil_variant variant = {"baseline", 0, run, 0};

const cuvil_artefact wait_artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "wait",
    .input_count = 1,
    .inputs = &input,
    .variant_count = 1,
    .variants = &variant,
};
