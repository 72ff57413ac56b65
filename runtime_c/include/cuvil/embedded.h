/* What `<name>_inference` of an artefact for a target without an operating system stands on: all of
 * the runtime that reaches such an artefact. */
#ifndef CUVIL_EMBEDDED_H
#define CUVIL_EMBEDDED_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the model once in `bytes` bytes of the caller's memory (any alignment), which hold nothing
 * between calls: no model is opened and nothing is allocated. Calls on different memory may
 * overlap. extents: those of the artefact's symbols. data: the inputs, then the outputs, each
 * aligned to its elements; then for each output where the extents of its shape go (int64_t per
 * dim), or NULL. Returns a cuvil_status: CUVIL_NEED_MEMORY where the memory is too small,
 * CUVIL_SHAPE_MISMATCH for extents out of their bounds, CUVIL_INVALID_ARGUMENT for data that is
 * NULL or not aligned, or what an operator met. */
int32_t cuvil_embedded_run(const cuvil_artefact *artefact, void *memory, size_t bytes,
                           const int64_t *extents, void *const *data);

#ifdef __cplusplus
}
#endif
#endif
