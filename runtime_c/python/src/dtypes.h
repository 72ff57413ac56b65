/* numpy's types for cuvil_dtype and back. */
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "cuvil/cuvil.h"

namespace cuvil {

namespace py = pybind11;

constexpr uint8_t LAST_DTYPE = CUVIL_STRING;

/* numpy's dtype for an element type. bfloat16 and the narrow types are those of ml_dtypes, or
 * unsigned integers of their size where that is missing or does not know them. */
py::dtype numpy_dtype(uint8_t dtype);

/* The element type of an array's dtype, native byte order only; 0 when there is none. */
uint8_t element_type(const py::dtype &dtype);

}  // namespace cuvil
