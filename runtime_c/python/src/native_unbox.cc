/* Python objects to values of compiled functions. */
#include <cstring>

#include "native_arrays.h"
#include "native_context.h"
#include "native_tensors.h"

namespace cuvil::native {

namespace {

/* Whether an int is of one digit at most; then its value is in the slot. */
bool unbox_small(PyObject *object, int64_t *slot) {
#if PY_VERSION_HEX >= 0x030C0000
  auto *number = reinterpret_cast<PyLongObject *>(object);
  if (!PyUnstable_Long_IsCompact(number)) return false;
  *slot = PyUnstable_Long_CompactValue(number);
#else
  Py_ssize_t digits = Py_SIZE(object);
  if (digits < -1 || digits > 1) return false;
  *slot = digits * static_cast<int64_t>(reinterpret_cast<PyLongObject *>(object)->ob_digit[0]);
#endif
  return true;
}

bool unbox_int(PyObject *object, int64_t *slot) {
  int overflow = 0;
  if (!PyLong_CheckExact(object)) return false;
  if (unbox_small(object, slot)) return true;
  *slot = PyLong_AsLongLongAndOverflow(object, &overflow);
  return !overflow;
}

bool unbox_float(PyObject *object, int64_t *slot) {
  if (!PyFloat_CheckExact(object)) return false;
  double value = PyFloat_AS_DOUBLE(object);
  std::memcpy(slot, &value, sizeof value);
  return true;
}

bool unbox_bool(PyObject *object, int64_t *slot) {
  *slot = object == Py_True;
  return PyBool_Check(object);
}

inline __attribute__((always_inline)) bool unbox_str(PyObject *object, int64_t *slots) {
  if (!PyUnicode_CheckExact(object)) return false;
#if PY_VERSION_HEX < 0x030C0000
  if (!PyUnicode_IS_COMPACT_ASCII(object) && PyUnicode_READY(object)) {
    PyErr_Clear();
    return false;
  }
#endif
  Str text = read_str(object);
  std::memcpy(slots, &text, sizeof text);
  return true;
}

/* Whether the object is a tuple of so many floats, which then are in the slots. */
inline __attribute__((always_inline)) bool unbox_floats(PyObject *object, Py_ssize_t count,
                                                        int64_t *slots) {
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) != count) return false;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!unbox_float(PyTuple_GET_ITEM(object, i), slots + i)) return false;
  }
  return true;
}

bool is_of_floats(const Type &type) {
  for (const Type &part : type.parts) {
    if (part.kind != Kind::Float) return false;
  }
  return type.kind == Kind::Tuple && !type.parts.empty();
}

bool unbox_tuples(const Type &type, PyObject *list, int64_t *slots) {
  Py_ssize_t count = PyList_GET_SIZE(list), width = static_cast<Py_ssize_t>(type.parts.size());
  for (Py_ssize_t i = 0; width == 2 && i < count; i++, slots += 2) { /* for speed */
    if (!unbox_floats(PyList_GET_ITEM(list, i), 2, slots)) return false;
  }
  for (Py_ssize_t i = 0; width != 2 && i < count; i++, slots += width) {
    if (!unbox_floats(PyList_GET_ITEM(list, i), width, slots)) return false;
  }
  return true;
}

bool unbox_tuple(Context *context, const Type &type, PyObject *object, int64_t *slots) {
  Py_ssize_t count = static_cast<Py_ssize_t>(type.parts.size());
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) != count) return false;
  for (Py_ssize_t i = 0; i < count; i++) {
    const Type &part = type.parts[static_cast<size_t>(i)];
    if (!unbox(context, part, PyTuple_GET_ITEM(object, i), slots)) return false;
    slots += part.slots;
  }
  return true;
}

template <bool (*Item)(PyObject *, int64_t *)>
bool unbox_items(PyObject *object, int64_t *slots, int width) {
  Py_ssize_t count = PyList_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < count; i++, slots += width) {
    if (!Item(PyList_GET_ITEM(object, i), slots)) return false;
  }
  return true;
}

bool unbox_list(Context *context, const Type &type, PyObject *object, int64_t *slot) {
  if (!PyList_CheckExact(object)) return false;
  const Type &item = type.parts[0];
  int64_t count = PyList_GET_SIZE(object);
  List *list = static_cast<List *>(allocate(context, sizeof(List)));
  int64_t *data = static_cast<int64_t *>(allocate(context, count * item.slots * 8));
  *list = {count, count, data, object};
  *slot = static_cast<int64_t>(reinterpret_cast<uintptr_t>(list));
  if (is_of_floats(item)) return unbox_tuples(item, object, data);
  switch (item.kind) {
    case Kind::Int:
      return unbox_items<unbox_int>(object, data, 1);
    case Kind::Float:
      return unbox_items<unbox_float>(object, data, 1);
    case Kind::Str:
      return unbox_items<unbox_str>(object, data, 2);
    default:
      for (int64_t i = 0; i < count; i++, data += item.slots) {
        if (!unbox(context, item, PyList_GET_ITEM(object, i), data)) return false;
      }
      return true;
  }
}

/* A member of a dict or set goes in: its key, then, where there is one, its value. */
bool add_entry(Context *context, const Type &type, Dict *dict, PyObject *key, PyObject *value) {
  enum { MOST = 32 };
  int64_t slots[MOST];
  if (type.parts[0].slots > MOST || !unbox(context, type.parts[0], key, slots)) return false;
  int64_t *place = dict_put(context, dict, slots);
  return !value || unbox(context, type.parts[1], value, place);
}

bool unbox_dict(Context *context, const Type &type, PyObject *object, int64_t *slot) {
  if (!PyDict_CheckExact(object)) return false;
  Dict *dict = new_dict(context, type.parts[0], type.parts[1].slots);
  dict->source = object;
  *slot = static_cast<int64_t>(reinterpret_cast<uintptr_t>(dict));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
    if (!add_entry(context, type, dict, key, value)) return false;
  }
  return true;
}

}  // namespace

bool unbox(Context *context, const Type &type, PyObject *object, int64_t *slots) {
  switch (type.kind) {
    case Kind::Int:
      return unbox_int(object, slots);
    case Kind::Float:
      return unbox_float(object, slots);
    case Kind::Bool:
      return unbox_bool(object, slots);
    case Kind::None:
      return object == Py_None;
    case Kind::Str:
      return unbox_str(object, slots);
    case Kind::Tuple:
      return unbox_tuple(context, type, object, slots);
    case Kind::List:
      return unbox_list(context, type, object, slots);
    case Kind::Dict:
      return unbox_dict(context, type, object, slots);
    case Kind::Array:
      return unbox_array(type, object, slots);
    case Kind::Scalar:
      return unbox_scalar(type, object, slots);
    case Kind::Tensor:
      return unbox_tensor(type, object, slots);
    default: /* sets have no order that a copy would keep; numbers, tensors of
              * rank 0 and unions are results */
      return false;
  }
}

}  // namespace cuvil::native
