/* Strings between Python and the runtime. */
#pragma once

#include "inputs.h"

namespace cuvil {

/* A value over arrays of str objects, numpy's own types of text, bytes that are UTF-8, a str or
 * lists of them. The strings stay in `borrowed`. Raises DTypeError, InputError or
 * ShapeMismatchError. */
cuvil_value read_strings(py::handle object, const cuvil_tensor_info &info, Borrowed &borrowed);

/* Room for the elements of an output of this shape. */
py::array string_room(const py::array::ShapeContainer &shape);

/* The strings of an output as an array of str objects. */
py::object strings_of(const cuvil_value &value);

}  // namespace cuvil
