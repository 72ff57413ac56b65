#include "native_arrays.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdlib>
#include <cstring>

namespace cuvil::native {

namespace py = pybind11;

namespace {

using npy = py::detail::npy_api;
constexpr int WRITEABLE = npy::NPY_ARRAY_WRITEABLE_, CONTIGUOUS = npy::NPY_ARRAY_C_CONTIGUOUS_,
              ALIGNED = npy::NPY_ARRAY_ALIGNED_;

/* numpy's character of an element type that compiled code takes, else 0. */
char dtype_of(PyObject *descr) {
  const auto *proxy = py::detail::array_descriptor_proxy(descr);
  if (proxy->byteorder == '>' || !std::strchr("?bBhHiIlLqQfd", proxy->type)) return 0;
  return proxy->type == 'q' ? 'l' : proxy->type == 'Q' ? 'L' : proxy->type;
}

PyObject *descr_of(char dtype) {
  static const char known[] = "?bBhHiIlLfd";
  static PyObject *found[sizeof known] = {};
  size_t at = static_cast<size_t>(std::strchr(known, dtype) - known);
  if (!found[at]) found[at] = py::dtype(std::string(1, dtype)).release().ptr();
  return found[at];
}

/* An array of numpy's own class. */
bool is_array(PyObject *object) {
  return npy::get().PyArray_Check_(object) && Py_TYPE(object) == npy::get().PyArray_Type_;
}

void free_capsule(PyObject *capsule) {
  free_block(static_cast<Block *>(PyCapsule_GetPointer(capsule, "cuvil.block")));
}

/* The object that keeps the memory of an array: a new reference. */
PyObject *owner_of(int64_t owner) {
  if (!(owner & 1)) {
    PyObject *array = reinterpret_cast<PyObject *>(static_cast<uintptr_t>(owner));
    Py_INCREF(array);
    return array;
  }
  Block *block = reinterpret_cast<Block *>(static_cast<uintptr_t>(owner - 1));
  if (!block->capsule) block->capsule = PyCapsule_New(block, "cuvil.block", free_capsule);
  Py_XINCREF(block->capsule);
  return block->capsule;
}

/* Whether the array is all of the numpy array that it came from. */
bool is_whole(const Type &type, const int64_t *slots) {
  int64_t owner = slots[1 + 2 * type.rank];
  if (owner & 1 || !is_array(reinterpret_cast<PyObject *>(owner))) return false;
  const auto *array = py::detail::array_proxy(reinterpret_cast<void *>(owner));
  bool same = array->nd == type.rank && reinterpret_cast<int64_t>(array->data) == slots[0] &&
              dtype_of(array->descr) == type.dtype;
  for (int i = 0; same && i < type.rank; i++) {
    same = array->dimensions[i] == slots[1 + i] && array->strides[i] == slots[1 + type.rank + i];
  }
  return same;
}

}  // namespace

bool unbox_array(const Type &type, PyObject *object, int64_t *slots) {
  if (!is_array(object)) return false;
  const auto *array = py::detail::array_proxy(object);
  int needed = ALIGNED | (type.contiguous ? CONTIGUOUS : 0) | (type.writable ? WRITEABLE : 0);
  if (array->nd != type.rank || (array->flags & needed) != needed ||
      dtype_of(array->descr) != type.dtype) {
    return false;
  }
  *slots++ = reinterpret_cast<int64_t>(array->data);
  for (int i = 0; i < type.rank; i++) *slots++ = array->dimensions[i];
  for (int i = 0; i < type.rank; i++) *slots++ = array->strides[i];
  *slots = reinterpret_cast<int64_t>(object);
  return true;
}

bool unbox_scalar(const Type &type, PyObject *object, int64_t *slots) {
  int number = py::detail::array_descriptor_proxy(descr_of(type.dtype))->type_num;
  PyObject *kind = npy::get().PyArray_TypeObjectFromType_(number);
  bool good = kind && reinterpret_cast<PyObject *>(Py_TYPE(object)) == kind;
  Py_XDECREF(kind);
  *slots = 0;
  if (good) npy::get().PyArray_ScalarAsCtype_(object, slots);
  return good;
}

PyObject *box_array(Context *, const Type &type, const int64_t *slots) {
  int64_t owner = slots[1 + 2 * type.rank];
  if (is_whole(type, slots)) return owner_of(owner);
  int flags = type.writable ? WRITEABLE : 0;
  PyObject *base = owner_of(owner), *descr = descr_of(type.dtype);
  if (!base) return nullptr;
  Py_INCREF(descr);
  PyObject *array = npy::get().PyArray_NewFromDescr_(
      npy::get().PyArray_Type_, descr, type.rank, reinterpret_cast<const Py_intptr_t *>(slots + 1),
      reinterpret_cast<const Py_intptr_t *>(slots + 1 + type.rank),
      reinterpret_cast<void *>(slots[0]), flags, nullptr);
  if (!array) {
    Py_DECREF(base);
    return nullptr;
  }
  if (npy::get().PyArray_SetBaseObject_(array, base)) {
    Py_DECREF(array);
    return nullptr;
  }
  return array;
}

PyObject *box_scalar(const Type &type, const int64_t *slots) {
  return npy::get().PyArray_Scalar_(const_cast<int64_t *>(slots), descr_of(type.dtype), nullptr);
}

std::string array_text(PyObject *object) {
  if (!is_array(object)) {
    if (!PyObject_HasAttrString(object, "dtype")) return "";
    PyObject *descr = PyObject_GetAttrString(object, "dtype");
    char dtype = descr && py::isinstance<py::dtype>(descr) ? dtype_of(descr) : 0;
    Py_XDECREF(descr);
    return dtype ? std::string("u") + dtype : "";
  }
  const auto *array = py::detail::array_proxy(object);
  char dtype = dtype_of(array->descr);
  if (!dtype || array->nd < 1 || array->nd > 8 || !(array->flags & ALIGNED)) return "";
  return std::string("a") + dtype + static_cast<char>('0' + array->nd) +
         (array->flags & CONTIGUOUS ? 'C' : 'A') + (array->flags & WRITEABLE ? 'w' : 'r');
}

}  // namespace cuvil::native
