/* What the one-call form `<name>_inference` of a generated library stands on. */
#ifndef CUVIL_SIMPLE_H
#define CUVIL_SIMPLE_H

#include "cuvil.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUVIL_SIMPLE_CONTEXTS 8

/* Zero-initialised, one per model of a program: the model is opened by the first call, contexts are
 * kept for the next ones, and both live as long as the process. */
typedef struct cuvil_simple {
  void *model;
  void *contexts[CUVIL_SIMPLE_CONTEXTS];
} cuvil_simple;

/* Runs the model on dense tensors: extents holds those of the artefact's symbols in their order,
 * then how many elements each output has room for (-1: enough); data the inputs, then the outputs,
 * then for each output where its shape goes (int64_t per dim), or NULL. Shapes are also told where
 * room was short (CUVIL_NEED_MEMORY). Any thread may call. */
cuvil_status cuvil_simple_run(const cuvil_artefact *artefact, cuvil_simple *simple,
                              const int64_t *extents, void *const *data);

#ifdef __cplusplus
}
#endif
#endif
