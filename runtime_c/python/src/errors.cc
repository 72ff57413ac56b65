#include "errors.h"

namespace cuvil {

namespace py = pybind11;

namespace {

const char *class_of(cuvil_status status) {
  switch (status) {
    case CUVIL_INVALID_ARGUMENT:
      return "InputError";
    case CUVIL_DTYPE_MISMATCH:
      return "DTypeError";
    case CUVIL_RANK_MISMATCH:
    case CUVIL_SHAPE_MISMATCH:
      return "ShapeMismatchError";
    case CUVIL_BAD_ARTEFACT:
    case CUVIL_IO_ERROR:
      return "ArtefactError";
    case CUVIL_UNSUPPORTED_CPU:
      return "TargetError";
    case CUVIL_CANCELLED:
      return "CancelledError";
    case CUVIL_TIMED_OUT:
      return "TimeLimitError";
    default:
      return "RuntimeFailure";
  }
}

}  // namespace

void raise(const char *name, const std::string &message) {
  py::object type = py::module_::import("cuvil_runtime.errors").attr(name);
  PyErr_SetString(type.ptr(), message.c_str());
  throw py::error_already_set();
}

void raise_status(cuvil_status status, const std::string &message) {
  raise(class_of(status), message.empty() ? cuvil_status_text(status) : message);
}

}  // namespace cuvil
