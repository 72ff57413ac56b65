#include "inputs.h"

#include <cstring>
#include <memory>
#include <string>

#include "dlpack.h"
#include "dtypes.h"
#include "errors.h"
#include "texts.h"

namespace cuvil {

namespace {

std::string about(const cuvil_tensor_info &info) {
  return "input '" + std::string(info.name) + "': ";
}

void check_rank(py::ssize_t rank, const cuvil_tensor_info &info) {
  if (rank != info.rank) {
    raise("ShapeMismatchError", about(info) + "expected rank " + std::to_string(info.rank) +
                                    ", got " + std::to_string(rank));
  }
}

[[noreturn]] void refuse_type(const std::string &got, const cuvil_tensor_info &info) {
  raise("DTypeError", about(info) + "expected " + cuvil_dtype_name(info.dtype) + ", got " + got);
}

cuvil_value read_array(py::array array, const cuvil_tensor_info &info, Borrowed &borrowed) {
  constexpr int usable =
      py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  uint8_t dtype = element_type(array.dtype());
  if (dtype != info.dtype && !array.dtype().is(numpy_dtype(info.dtype))) {
    refuse_type(py::str(array.dtype()), info);
  }
  check_rank(array.ndim(), info);
  if ((array.flags() & usable) != usable) {
    array = py::module_::import("numpy").attr("require")(array, py::none(), "CA");
  }
  cuvil_value value = cuvil_tensor(static_cast<cuvil_dtype>(info.dtype), array.data(), 0, nullptr);
  value.rank = info.rank;
  for (int d = 0; d < info.rank; d++) value.shape[d] = array.shape()[d];
  borrowed.keep(std::move(array));
  return value;
}

const char *dlpack_type_name(const DLTensor &tensor) {
  for (uint8_t dtype = CUVIL_BOOL; dtype <= LAST_DTYPE; dtype++) {
    DLType type = dlpack_type(dtype);
    if (type.code == tensor.dtype.code && type.bits == tensor.dtype.bits) {
      return cuvil_dtype_name(dtype);
    }
  }
  return "another type";
}

bool is_dense(const DLTensor &tensor) {
  int64_t expected = 1;
  for (int d = tensor.rank - 1; tensor.strides && d >= 0; d--) {
    if (tensor.shape[d] > 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

/* Copies the strided elements of dim `d` and inner dims; returns the end of what was written. */
char *copy_strided(const DLTensor &tensor, int d, const char *from, char *to, size_t element) {
  if (d == tensor.rank) {
    std::memcpy(to, from, element);
    return to + element;
  }
  for (int64_t i = 0; i < tensor.shape[d]; i++) {
    to = copy_strided(tensor, d + 1, from, to, element);
    from += tensor.strides[d] * static_cast<int64_t>(element);
  }
  return to;
}

void *dense_copy(const DLTensor &tensor, const char *data, const cuvil_tensor_info &info,
                 Borrowed &borrowed) {
  std::vector<py::ssize_t> shape(tensor.shape, tensor.shape + tensor.rank);
  py::array copy(numpy_dtype(info.dtype), shape);
  char *to = static_cast<char *>(copy.mutable_data());
  size_t element = cuvil_dtype_size(info.dtype);
  if (tensor.strides) {
    copy_strided(tensor, 0, data, to, element);
  } else {
    std::memcpy(to, data, static_cast<size_t>(copy.nbytes()));
  }
  borrowed.keep(std::move(copy));
  return to;
}

DLManagedTensor *take_capsule(py::handle object, const cuvil_tensor_info &info) {
  py::object capsule = object.attr("__dlpack__")();
  auto *tensor = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (!tensor) {
    PyErr_Clear();
    raise("InputError", about(info) + "its __dlpack__ gives no tensor");
  }
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return tensor;
}

cuvil_value read_dlpack(py::handle object, const cuvil_tensor_info &info, Borrowed &borrowed) {
  DLManagedTensor *managed = take_capsule(object, info);
  borrowed.keep(managed);
  const DLTensor &tensor = managed->tensor;
  DLType type = dlpack_type(info.dtype);
  if (tensor.device.type != DL_CPU && tensor.device.type != DL_CUDA_HOST &&
      tensor.device.type != DL_ROCM_HOST) {
    raise("InputError", about(info) + "it is on another device: move it to the cpu");
  }
  if (tensor.dtype.code != type.code || tensor.dtype.bits != type.bits || tensor.dtype.lanes != 1) {
    refuse_type(dlpack_type_name(tensor), info);
  }
  check_rank(tensor.rank, info);
  char *data = static_cast<char *>(tensor.data) + tensor.byte_offset;
  size_t element = cuvil_dtype_size(info.dtype);
  bool aligned = reinterpret_cast<uintptr_t>(data) % element == 0;
  void *usable = aligned && is_dense(tensor) ? data : dense_copy(tensor, data, info, borrowed);
  return cuvil_tensor(static_cast<cuvil_dtype>(info.dtype), usable, info.rank, tensor.shape);
}

bool is_plain(py::handle object) {
  return py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object) ||
         py::isinstance<py::int_>(object) || py::isinstance<py::float_>(object);
}

py::array as_array(py::handle object, const cuvil_tensor_info &info) {
  py::object asarray = py::module_::import("numpy").attr("asarray");
  try {
    return is_plain(object) ? asarray(object, numpy_dtype(info.dtype)) : asarray(object);
  } catch (py::error_already_set &error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    raise("InputError", about(info) + "not an array: " + std::string(py::str(error.value())));
  }
}

}  // namespace

Borrowed::~Borrowed() {
  for (void *tensor : tensors_) {
    auto *managed = static_cast<DLManagedTensor *>(tensor);
    if (managed->deleter) managed->deleter(managed);
  }
}

cuvil_value read_input(py::handle object, const cuvil_tensor_info &info, Borrowed &borrowed) {
  if (info.dtype == CUVIL_STRING) return read_strings(object, info, borrowed);
  if (py::isinstance<py::array>(object)) {
    return read_array(py::reinterpret_borrow<py::array>(object), info, borrowed);
  }
  if (py::hasattr(object, "__dlpack__") && !py::hasattr(object, "__array_interface__")) {
    return read_dlpack(object, info, borrowed);
  }
  return read_array(as_array(object, info), info, borrowed);
}

}  // namespace cuvil
