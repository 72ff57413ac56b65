#ifndef CUVIL_DTYPES_H
#define CUVIL_DTYPES_H

#include "cuvil/abi.h"

/* As declared in cuvil/cuvil.h, which a target without an operating system does not have. */
uint32_t cuvil_dtype_size(uint8_t dtype);
uint32_t cuvil_dtype_align(uint8_t dtype);

#endif
