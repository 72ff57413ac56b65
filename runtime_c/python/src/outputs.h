/* Arrays that receive a run's outputs. */
#pragma once

#include <pybind11/numpy.h>

#include "cuvil/cuvil.h"

namespace cuvil {

namespace py = pybind11;

/* From cuvil_shapes' answer: makes the array and points `value` to it. Extents without a bound are
 * left to the runtime: the result is None. */
py::object make_output(const cuvil_tensor_info &info, cuvil_value &value);

/* Points `value` to an array of the caller's; raises when type, shape or layout do not fit. */
void use_output(py::handle array, const cuvil_tensor_info &info, cuvil_value &value);

/* Refuses arrays of the caller's that share memory with an input or with one another. */
void check_apart(const cuvil_artefact &a, const cuvil_value *inputs, const cuvil_value *outputs);

/* After the run: the array with the shape that was produced. */
py::object finish_output(py::object array, const cuvil_tensor_info &info, const cuvil_value &value);

}  // namespace cuvil
