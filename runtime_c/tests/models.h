/* Hand-written artefacts: what the compiler would make of small models. */
#ifndef CUVIL_TESTS_MODELS_H
#define CUVIL_TESTS_MODELS_H

#include "cuvil/cuvil.h"

/* z[N, 3] = x[N, 3] + y[N, 3], float32, 1 <= N <= 100000, by way of the arena. */
extern const cuvil_artefact add_artefact;
/* y[N] = x[N] * weight[0], float32, weights in the file scale.weights. */
extern const cuvil_artefact scale_artefact;
/* positive[K] = the elements of x[N] above 0, K known after the run and without a bound. */
extern const cuvil_artefact positive_artefact;
/* sums = items + shift for a sequence of x[N] and x[2], kept = shift, float32. shift is an optional
 * that is there; mask and the output dropped are optionals that are not. */
extern const cuvil_artefact pairs_artefact;
/* Waits until its input go[] is not 0. */
extern const cuvil_artefact wait_artefact;
/* Copies a bfloat16, a float16 and a bool tensor of 2 x 3. */
extern const cuvil_artefact half_artefact;
/* y[1, 4] = 2 x[1, 4], float32: the model of the example in cuvil.h. */
extern const cuvil_artefact bert_artefact;
/* y[N] = 2 x[N], float32, computed by the device called "fake". */
extern const cuvil_artefact twice_artefact;

#endif
