/* Hand-written artefacts: what the compiler would make of three small models. */
#ifndef CUVIL_TESTS_MODELS_H
#define CUVIL_TESTS_MODELS_H

#include "cuvil/cuvil.h"

/* z[N, 3] = x[N, 3] + y[N, 3], float32, 1 <= N <= 100000, by way of the arena. */
extern const cuvil_artefact add_artefact;
/* y[N] = x[N] * weight[0], float32, weights in the file scale.weights. */
extern const cuvil_artefact scale_artefact;
/* positive[K] = the elements of x[N] above 0, K known after the run and without a bound. */
extern const cuvil_artefact positive_artefact;

#endif
