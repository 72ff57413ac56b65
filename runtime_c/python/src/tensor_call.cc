#include "tensor_call.h"

#include <cstring>
#include <string_view>

#include "errors.h"
#include "tensor_output.h"

namespace cuvil {

namespace {

constexpr uint32_t KNOWN_MAJOR = 1;

const DLExchange *known_exchange(const py::capsule &capsule) {
  auto *found =
      static_cast<const DLExchange *>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!found) throw py::error_already_set();
  while (found && found->version.major != KNOWN_MAJOR) found = found->older;
  if (!found || !found->view)
    raise("InputError", "the tensors' DLPack table is of another version");
  return found;
}

/* Whether the elements lie without gaps in the order of `axes`; sets the extents in that order. */
bool is_dense(const DLTensor &tensor, const std::vector<int> &axes, int64_t *shape) {
  int64_t expected = 1;
  for (int d = tensor.rank - 1; d >= 0; d--) {
    int axis = axes.empty() ? d : axes[static_cast<size_t>(d)];
    int64_t extent = tensor.shape[axis];
    if (extent != 1 && tensor.strides && tensor.strides[axis] != expected) return false;
    expected *= extent;
    shape[d] = extent;
  }
  return true;
}

/* The elements of a dense tensor. */
std::string_view contents_of(const DLTensor &tensor) {
  size_t bytes = (size_t(tensor.dtype.bits) * tensor.dtype.lanes + 7) / 8;
  for (int d = 0; d < tensor.rank; d++) bytes *= static_cast<size_t>(tensor.shape[d]);
  return {static_cast<const char *>(tensor.data) + tensor.byte_offset, bytes};
}

long long version_of(PyObject *tensor) {
  static PyObject *name = PyUnicode_InternFromString("_version");
  PyObject *found = PyObject_GetAttr(tensor, name);
  if (!found) throw py::error_already_set();
  long long version = PyLong_AsLongLong(found);
  Py_DECREF(found);
  return version;
}

/* New tensors for the outputs of one run. */
class Tensors : public Outputs {
 public:
  Tensors(const DLExchange &exchange, const cuvil_artefact &artefact,
          const std::vector<std::vector<int>> &axes)
      : exchange_(exchange), artefact_(artefact), axes_(axes), made_(axes.size()) {}

  void make(cuvil_value *values) override {
    for (uint32_t i = 0; i < made_.size(); i++) {
      bool bounded = true;
      for (int d = 0; d < values[i].rank; d++) bounded = bounded && values[i].shape[d] >= 0;
      if (!bounded) {
        values[i] = cuvil_output(nullptr, 0);
        continue;
      }
      made_[i] = make_one(i, values[i]);
      values[i].data = made_[i].data();
      std::memcpy(shapes_of(i), values[i].shape, sizeof values[i].shape);
    }
  }

  /* Results whose extents the run has found are copied into tensors that fit. */
  void finish(const cuvil_value *values) override {
    result_ = py::list(made_.size());
    for (uint32_t i = 0; i < made_.size(); i++) {
      const cuvil_value &value = values[i];
      size_t extents = sizeof(int64_t) * value.rank;
      if (!made_[i].exists() || std::memcmp(shapes_of(i), value.shape, extents)) {
        NewTensor fitting = make_one(i, value);
        size_t bytes = cuvil_dtype_size(artefact_.outputs[i].dtype);
        for (int d = 0; d < value.rank; d++) bytes *= static_cast<size_t>(value.shape[d]);
        if (bytes) {
          std::memcpy(fitting.data(), static_cast<char *>(value.data) + value.byte_offset, bytes);
        }
        made_[i] = std::move(fitting);
      }
      result_[i] = made_[i].release(exchange_);
    }
  }

  py::list result() { return std::move(result_); }

 private:
  NewTensor make_one(uint32_t i, const cuvil_value &value) const {
    return NewTensor(artefact_.outputs[i].dtype, value.rank, value.shape, axes_[i]);
  }

  int64_t *shapes_of(uint32_t i) {
    shapes_.resize(made_.size() * CUVIL_MAX_RANK);
    return shapes_.data() + i * CUVIL_MAX_RANK;
  }

  const DLExchange &exchange_;
  const cuvil_artefact &artefact_;
  const std::vector<std::vector<int>> &axes_;
  std::vector<NewTensor> made_;
  std::vector<int64_t> shapes_;
  py::list result_;
};

}  // namespace

TensorCall::TensorCall(py::object model, py::capsule exchange, py::tuple classes, py::str declined,
                       const std::vector<Row> &inputs, std::vector<std::vector<int>> outputs,
                       const std::vector<Constant> &constants)
    : keep_(std::move(model)),
      model_(keep_.cast<Model &>()),
      exchange_(known_exchange(exchange)),
      classes_(std::move(classes)),
      declined_(std::move(declined)),
      outputs_(std::move(outputs)) {
  const cuvil_artefact &a = model_.artefact();
  if (inputs.size() != a.input_count || outputs_.size() != a.output_count) {
    raise("InputError", std::string(a.name) + ": the places do not fit the model");
  }
  for (const auto &[place, is_size, axes] : inputs) {
    inputs_.push_back({place, is_size, axes});
    least_ = std::max(least_, place + 1);
  }
  for (const auto &[place, tensor, by_contents] : constants) {
    DLTensor seen;
    if (!view(tensor.ptr(), seen)) throw py::error_already_set();
    constants_.push_back({place, tensor, version_of(tensor.ptr()), seen.data, {}});
    if (by_contents) constants_.back().contents = contents_of(seen);
    least_ = std::max(least_, place + 1);
  }
}

bool TensorCall::is_plain(PyObject *object) const {
  PyObject *type = reinterpret_cast<PyObject *>(Py_TYPE(object));
  for (py::ssize_t i = 0; i < PyTuple_GET_SIZE(classes_.ptr()); i++) {
    if (PyTuple_GET_ITEM(classes_.ptr(), i) != type) continue;
    PyObject *found = PyObject_CallMethodNoArgs(object, declined_.ptr());
    if (!found) throw py::error_already_set();
    Py_DECREF(found);
    return found != Py_True;
  }
  return false;
}

bool TensorCall::view(PyObject *object, DLTensor &tensor) const {
  return exchange_->view(object, &tensor) == 0;
}

bool TensorCall::holds(const Watched &watched, PyObject *object) const {
  DLTensor seen;
  if (object != watched.tensor.ptr() || version_of(object) != watched.version) return false;
  if (view(object, seen)) {
    return seen.data == watched.data &&
           (!watched.contents || contents_of(seen) == *watched.contents);
  }
  PyErr_Clear();
  return false;
}

bool TensorCall::read(PyObject *object, uint32_t input, cuvil_value &value, int64_t &size) const {
  const TensorPlace &at = inputs_[input];
  const cuvil_tensor_info &info = model_.artefact().inputs[input];
  auto dtype = static_cast<cuvil_dtype>(info.dtype);
  if (at.is_size) {
    if (!PyLong_CheckExact(object) || info.rank || dtype != CUVIL_I64) return false;
    size = PyLong_AsLongLong(object);
    if (size == -1 && PyErr_Occurred()) throw py::error_already_set();
    value = cuvil_tensor(dtype, &size, 0, nullptr);
    return true;
  }
  if (!is_plain(object)) return false;
  DLTensor tensor;
  if (!view(object, tensor)) {
    PyErr_Clear();
    return false;
  }
  DLType type = dlpack_type(info.dtype);
  if (tensor.device.type != DL_CPU || tensor.dtype.code != type.code ||
      tensor.dtype.bits != type.bits || tensor.dtype.lanes != 1 || tensor.rank != info.rank ||
      (!at.axes.empty() && at.axes.size() != info.rank)) {
    return false;
  }
  static char nothing[sizeof(int64_t)]; /* where a tensor without elements lies */
  char *data = tensor.data ? static_cast<char *>(tensor.data) + tensor.byte_offset : nothing;
  value = cuvil_tensor(dtype, data, 0, nullptr);
  value.rank = info.rank;
  return reinterpret_cast<uintptr_t>(data) % cuvil_dtype_size(info.dtype) == 0 &&
         is_dense(tensor, at.axes, value.shape);
}

py::object TensorCall::call(const py::object &args) const {
  PyObject *row = args.ptr();
  bool fits = PyList_CheckExact(row) || PyTuple_CheckExact(row);
  if (!fits || PySequence_Fast_GET_SIZE(row) < least_) return py::none();
  PyObject **items = PySequence_Fast_ITEMS(row);
  for (const Watched &watched : constants_) {
    if (!holds(watched, items[watched.place])) return py::none();
  }
  const cuvil_artefact &a = model_.artefact();
  Values in(a.input_count), out(a.output_count);
  std::vector<int64_t> sizes(inputs_.size());
  std::vector<py::object> kept; /* a list of arguments may change while the model runs */
  kept.reserve(inputs_.size());
  for (uint32_t i = 0; i < inputs_.size(); i++) {
    PyObject *object = items[inputs_[i].place];
    if (!read(object, i, in.data()[i], sizes[i])) return py::none();
    kept.push_back(py::reinterpret_borrow<py::object>(object));
  }
  Tensors outputs(*exchange_, a, outputs_);
  model_.run_values(in.data(), out.data(), outputs);
  return outputs.result();
}

}  // namespace cuvil
