/* Outputs of a run as new tensors of a framework. */
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "cuvil/cuvil.h"
#include "dlpack.h"

namespace cuvil {

namespace py = pybind11;

/* A tensor on the cpu and its memory, owned until it is handed to the framework. */
class NewTensor {
 public:
  NewTensor() = default;
  NewTensor(const NewTensor &) = delete;
  NewTensor(NewTensor &&other) noexcept : owned_(other.owned_) { other.owned_ = nullptr; }
  NewTensor &operator=(NewTensor &&other) noexcept;
  ~NewTensor();

  /* Dense with `rank` extents. axes: which axis of the tensor each of them is; empty is in order.
   * Raises MemoryError. */
  NewTensor(uint8_t dtype, int rank, const int64_t *shape, const std::vector<int> &axes);

  bool exists() const { return owned_ != nullptr; }
  void *data() const { return owned_->tensor.data; }
  /* The framework's tensor, which takes the memory over. */
  py::object release(const DLExchange &exchange);

 private:
  DLVersionedTensor *owned_ = nullptr;
};

}  // namespace cuvil
