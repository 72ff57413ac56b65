/* Arrays of callers as values of the runtime. */
#pragma once

#include <pybind11/numpy.h>

#include <vector>

#include "cuvil/cuvil.h"

namespace cuvil {

namespace py = pybind11;

/* Keeps what the values of one call point to alive. */
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed &) = delete;
  Borrowed &operator=(const Borrowed &) = delete;
  ~Borrowed();
  void keep(py::object object) { objects_.push_back(std::move(object)); }
  void keep(void *dlpack) { tensors_.push_back(dlpack); }

 private:
  std::vector<py::object> objects_;
  std::vector<void *> tensors_; /* DLManagedTensor */
};

/* A value over `object`: a numpy array, what has __dlpack__ or the buffer protocol, or a number or
 * list, which takes the model's type. Copies only what is not dense or not aligned. Raises
 * DTypeError, InputError or ShapeMismatchError, which name the input. */
cuvil_value read_input(py::handle object, const cuvil_tensor_info &info, Borrowed &borrowed);

}  // namespace cuvil
