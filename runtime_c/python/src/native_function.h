/* The Python type of a compiled function, and what the compiler tells it. */
#ifndef CUVIL_NATIVE_FUNCTION_H
#define CUVIL_NATIVE_FUNCTION_H

#include <pybind11/pybind11.h>

namespace cuvil::native {

/* Adds to the module: NativeFunction, and functions that load code and add specialisations. */
void define_native(pybind11::module_ &module);

}  // namespace cuvil::native
#endif
