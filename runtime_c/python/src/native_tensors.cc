#include "native_tensors.h"

#include <cstring>

#include "dlpack.h"
#include "native_arrays.h"

namespace cuvil::native {

namespace {

/* The part of DLPack's table of C functions that reading a tensor needs; the layout is DLPack's. */
struct ExchangeTable {
  uint32_t major, minor;
  ExchangeTable *previous;
  void *allocate, *from_object, *to_object;
  int (*read)(void *object, DLTensor *tensor);
};

/* Of torch, once a tensor was seen. */
struct {
  PyObject *type, *view, *share, *element, *written, *needs_gradient, *is_negated;
  ExchangeTable *table;
} torch;

char dtype_of(const DLTensor &tensor) {
  if (tensor.dtype.lanes != 1) return 0;
  switch (tensor.dtype.code << 8 | tensor.dtype.bits) {
    case DL_BOOL << 8 | 8:
      return '?';
    case DL_UINT << 8 | 8:
      return 'B';
    case DL_INT << 8 | 8:
      return 'b';
    case DL_INT << 8 | 16:
      return 'h';
    case DL_INT << 8 | 32:
      return 'i';
    case DL_INT << 8 | 64:
      return 'l';
    case DL_FLOAT << 8 | 32:
      return 'f';
    case DL_FLOAT << 8 | 64:
      return 'd';
    default:
      return 0;
  }
}

bool is_false(PyObject *answer) {
  if (!answer) PyErr_Clear();
  Py_XDECREF(answer);
  return answer == Py_False;
}

bool is_dense(const DLTensor &tensor) {
  int64_t expected = 1;
  for (int d = tensor.rank - 1; d >= 0; d--) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

const char *data_of(const DLTensor &tensor) {
  return static_cast<const char *>(tensor.data) + tensor.byte_offset;
}

/* Whether the object is a tensor of elements that compiled code takes; extents stay in it. */
bool read(PyObject *object, DLTensor *tensor) {
  if (!torch.table || reinterpret_cast<PyObject *>(Py_TYPE(object)) != torch.type) return false;
  if (torch.table->read(object, tensor)) {
    PyErr_Clear(); /* on another device, sparse, or a stand-in for one */
    return false;
  }
  return tensor->device.type == DL_CPU && tensor->strides && dtype_of(*tensor) &&
         reinterpret_cast<uintptr_t>(data_of(*tensor)) % (tensor->dtype.bits / 8u) == 0 &&
         is_false(PyObject_GetAttr(object, torch.needs_gradient)) &&
         is_false(PyObject_CallMethodNoArgs(object, torch.is_negated));
}

PyObject *extents(const int64_t *values, int rank) {
  PyObject *tuple = PyTuple_New(rank);
  for (int i = 0; tuple && i < rank; i++) {
    PyObject *value = PyLong_FromLongLong(values[i]);
    if (!value) Py_CLEAR(tuple);
    if (value) PyTuple_SET_ITEM(tuple, i, value);
  }
  return tuple;
}

PyObject *use(PyObject *, PyObject *arguments) {
  PyObject *type, *view, *share, *element, *written;
  if (!PyArg_ParseTuple(arguments, "OOOOO", &type, &view, &share, &element, &written)) {
    return nullptr;
  }
  PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  if (!capsule) return nullptr;
  auto *table = static_cast<ExchangeTable *>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  Py_DECREF(capsule);
  if (!table) return nullptr;
  if (table->major != 1 || !table->read) {
    PyErr_SetString(PyExc_AttributeError, "another version of DLPack");
    return nullptr;
  }
  for (PyObject *object : {type, view, share, element, written}) Py_INCREF(object);
  torch = {type,
           view,
           share,
           element,
           written,
           PyUnicode_InternFromString("requires_grad"),
           PyUnicode_InternFromString("is_neg"),
           table};
  Py_RETURN_NONE;
}

PyObject *text(PyObject *, PyObject *object) {
  return PyUnicode_FromString(tensor_text(object).c_str());
}

PyMethodDef functions[] = {
    {"use_tensors", use, METH_VARARGS, nullptr},
    {"tensor_text", text, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool unbox_tensor(const Type &type, PyObject *object, int64_t *slots) {
  DLTensor tensor;
  if (!read(object, &tensor) || tensor.rank != type.rank || dtype_of(tensor) != type.dtype ||
      (type.contiguous && !is_dense(tensor))) {
    return false;
  }
  *slots++ = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data_of(tensor)));
  for (int i = 0; i < type.rank; i++) *slots++ = tensor.shape[i];
  for (int i = 0; i < type.rank; i++) *slots++ = tensor.strides[i] * (tensor.dtype.bits / 8);
  *slots = static_cast<int64_t>(reinterpret_cast<uintptr_t>(object));
  return true;
}

PyObject *box_tensor(Context *context, const Type &type, const int64_t *slots) {
  int64_t owner = slots[1 + 2 * type.rank];
  PyObject *base = reinterpret_cast<PyObject *>(static_cast<uintptr_t>(owner)), *made = nullptr;
  if (owner & 1 || reinterpret_cast<PyObject *>(Py_TYPE(base)) != torch.type) {
    PyObject *array = box_array(context, type, slots);
    if (array) made = PyObject_CallOneArg(torch.share, array);
    Py_XDECREF(array);
    return made;
  }
  PyObject *shape = extents(slots + 1, type.rank),
           *strides = extents(slots + 1 + type.rank, type.rank);
  if (shape && strides) {
    made = PyObject_CallFunction(torch.view, "OLOO", base, static_cast<long long>(slots[0]), shape,
                                 strides);
  }
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  return made;
}

PyObject *box_element(const Type &type, const int64_t *slots) {
  PyObject *scalar = box_scalar(type, slots);
  PyObject *made = scalar ? PyObject_CallOneArg(torch.element, scalar) : nullptr;
  Py_XDECREF(scalar);
  return made;
}

bool note_written(PyObject *tensor) {
  PyObject *answer = PyObject_CallOneArg(torch.written, tensor);
  Py_XDECREF(answer);
  return answer != nullptr;
}

std::string tensor_text(PyObject *object) {
  DLTensor tensor;
  if (!read(object, &tensor) || tensor.rank < 1 || tensor.rank > 8) return "";
  return std::string("T") + dtype_of(tensor) + static_cast<char>('0' + tensor.rank) +
         (is_dense(tensor) ? "Cw" : "Aw");
}

int define_tensors(PyObject *module) { return PyModule_AddFunctions(module, functions); }

}  // namespace cuvil::native
