/* From status codes to the classes of cuvil_runtime.errors. */
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "cuvil/cuvil.h"

namespace cuvil {

/* Raises cuvil_runtime.errors.<name>. */
[[noreturn]] void raise(const char *name, const std::string &message);

/* Raises the class that fits a failed status. */
[[noreturn]] void raise_status(cuvil_status status, const std::string &message);

}  // namespace cuvil
