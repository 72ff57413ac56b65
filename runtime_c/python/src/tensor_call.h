/* Calls of a model with a framework's own tensors, in one step: views in, new tensors out. */
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "dlpack.h"
#include "model.h"

namespace cuvil {

/* Where an argument of the model stands among those of a call, and its axes from the slowest to the
 * fastest where it is dense in another order than row-major. */
struct TensorPlace {
  py::ssize_t place;
  bool is_size; /* an int in place of a tensor */
  std::vector<int> axes;
};

class TensorCall {
 public:
  using Row = std::tuple<py::ssize_t, bool, std::vector<int>>;
  using Constant = std::tuple<py::ssize_t, py::object, bool>;

  /* model: a NativeModel. classes: the tensor's own ones; others are not taken. declined: their
   * method that tells that memory does not hold a tensor's elements. exchange: their
   * __dlpack_c_exchange_api__. outputs: axes, as for inputs. constants: tensors that calls pass at
   * these places, in the state that they have now, and whether their contents are part of it: they
   * are dense then. */
  TensorCall(py::object model, py::capsule exchange, py::tuple classes, py::str declined,
             const std::vector<Row> &inputs, std::vector<std::vector<int>> outputs,
             const std::vector<Constant> &constants);

  /* The outputs as a list of tensors. None where an argument is not a plain dense tensor of the
   * input's type, or a constant is another tensor or was written to. Raises as Model::run does. */
  py::object call(const py::object &args) const;

 private:
  struct Watched {
    py::ssize_t place;
    py::object tensor;
    long long version;
    const void *data;
    std::optional<std::string> contents;
  };

  bool is_plain(PyObject *object) const;
  bool view(PyObject *object, DLTensor &tensor) const;
  bool holds(const Watched &watched, PyObject *object) const;
  bool read(PyObject *object, uint32_t input, cuvil_value &value, int64_t &size) const;

  py::object keep_;
  Model &model_;
  const DLExchange *exchange_;
  py::tuple classes_;
  py::str declined_;
  std::vector<TensorPlace> inputs_;
  std::vector<std::vector<int>> outputs_;
  std::vector<Watched> constants_;
  py::ssize_t least_ = 0; /* arguments that a call has at least */
};

}  // namespace cuvil
