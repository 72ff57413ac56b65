/* Values of compiled functions to Python objects. */
#include <cstring>

#include "native_arrays.h"
#include "native_context.h"
#include "native_tensors.h"

namespace cuvil::native {

namespace {

double as_double(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
T *at_address(int64_t slot) {
  return reinterpret_cast<T *>(static_cast<uintptr_t>(slot));
}

PyObject *box_str(const int64_t *slots) {
  Str text;
  std::memcpy(&text, slots, sizeof text);
  return make_str(text);
}

PyObject *box_number(const int64_t *slots) {
  double value = as_double(slots[0]);
  return slots[1] ? PyLong_FromDouble(value) : PyFloat_FromDouble(value);
}

PyObject *box_tuple(Context *context, const Type &type, const int64_t *slots) {
  PyObject *tuple = PyTuple_New(static_cast<Py_ssize_t>(type.parts.size()));
  for (size_t i = 0; tuple && i < type.parts.size(); i++) {
    PyObject *item = box(context, type.parts[i], slots);
    if (!item) Py_CLEAR(tuple);
    if (item) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
    slots += type.parts[i].slots;
  }
  return tuple;
}

/* What stands for a container that was boxed already, or came from outside. */
PyObject *known(PyObject *source) {
  Py_XINCREF(source);
  return source;
}

#if !defined(Py_GIL_DISABLED) && !defined(Py_TRACE_REFS) && !defined(Py_REF_DEBUG)
enum { HAS_COPIES = 1 };
#else
enum { HAS_COPIES = 0 }; /* objects are registered there when they are made */
#endif

/* Copies of a float or int of one digit, which take half of the time that the functions of the C
 * API take: with memory from where they get theirs. */
template <class Object>
class Copies {
 public:
  explicit Copies(PyObject *model) : model_(reinterpret_cast<Object *>(model)) {
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &memory_);
  }
  Copies(const Copies &) = delete;
  Copies &operator=(const Copies &) = delete;
  ~Copies() { Py_XDECREF(reinterpret_cast<PyObject *>(model_)); }

  PyObject *make() const {
    void *place = model_ ? memory_.malloc(memory_.ctx, sizeof(Object)) : nullptr;
    if (!place) return nullptr;
    PyObject *made = static_cast<PyObject *>(std::memcpy(place, model_, sizeof(Object)));
    Py_SET_REFCNT(made, 1);
    return made;
  }

 private:
  Object *model_;
  PyMemAllocatorEx memory_;
};

bool fill_floats(PyObject *made, const List *list) {
  Copies<PyFloatObject> copies(PyFloat_FromDouble(1.0));
  for (int64_t i = 0; i < list->size; i++) {
    PyObject *object = copies.make();
    if (!object) return PyErr_NoMemory() != nullptr;
    reinterpret_cast<PyFloatObject *>(object)->ob_fval = as_double(list->data[i]);
    PyList_SET_ITEM(made, i, object);
  }
  return true;
}

/* The digit of an int that has one and is none of those that there is one object for; else -1. */
int64_t one_digit(int64_t value) {
  return value > 256 && value < (INT64_C(1) << PyLong_SHIFT) ? value : -1;
}

void set_digit(PyLongObject *object, int64_t digit) {
#if PY_VERSION_HEX >= 0x030C0000
  object->long_value.ob_digit[0] = static_cast<::digit>(digit);
#else
  object->ob_digit[0] = static_cast<::digit>(digit);
#endif
}

bool fill_ints(PyObject *made, const List *list) {
  Copies<PyLongObject> copies(PyLong_FromLong(1 << 20));
  for (int64_t i = 0; i < list->size; i++) {
    int64_t digit = one_digit(list->data[i]);
    PyObject *object = digit < 0 ? PyLong_FromLongLong(list->data[i]) : copies.make();
    if (!object) return PyErr_NoMemory() != nullptr;
    if (digit >= 0) set_digit(reinterpret_cast<PyLongObject *>(object), digit);
    PyList_SET_ITEM(made, i, object);
  }
  return true;
}

bool fill_list(Context *context, const Type &item, PyObject *made, const List *list) {
  if (HAS_COPIES && item.kind == Kind::Float) return fill_floats(made, list);
  if (HAS_COPIES && item.kind == Kind::Int) return fill_ints(made, list);
  const int64_t *slots = list->data;
  for (int64_t i = 0; i < list->size; i++, slots += item.slots) {
    PyObject *object = box(context, item, slots);
    if (!object) return false;
    PyList_SET_ITEM(made, i, object);
  }
  return true;
}

PyObject *box_list(Context *context, const Type &type, List *list) {
  if (list->source) return known(list->source);
  const Type &item = type.parts[0];
  PyObject *made = PyList_New(list->size);
  if (made && !fill_list(context, item, made, list)) Py_CLEAR(made);
  list->source = made; /* borrowed: whoever boxes again does so before it can be freed */
  return made;
}

bool add_entry(Context *context, const Type &type, PyObject *made, const int64_t *entry) {
  PyObject *key = box(context, type.parts[0], entry + 1);
  int status = -1;
  if (key && type.kind == Kind::Set) {
    status = PySet_Add(made, key);
  } else if (key) {
    PyObject *value = box(context, type.parts[1], entry + 1 + type.parts[0].slots);
    if (value) status = PyDict_SetItem(made, key, value);
    Py_XDECREF(value);
  }
  Py_XDECREF(key);
  return status == 0;
}

PyObject *fill(Context *context, const Type &type, PyObject *made, const Dict *dict) {
  for (int64_t i = 0; made && i < dict->filled; i++) {
    const int64_t *entry = dict->entries + i * dict->entry_slots;
    if (entry[0] != DELETED && !add_entry(context, type, made, entry)) return nullptr;
  }
  return made;
}

PyObject *box_dict(Context *context, const Type &type, Dict *dict) {
  if (dict->source) return known(dict->source);
  PyObject *made = type.kind == Kind::Set ? PySet_New(nullptr) : PyDict_New();
  if (made && !fill(context, type, made, dict)) Py_CLEAR(made);
  dict->source = made;
  return made;
}

}  // namespace

PyObject *box(Context *context, const Type &type, const int64_t *slots) {
  switch (type.kind) {
    case Kind::Int:
      return PyLong_FromLongLong(*slots);
    case Kind::Float:
      return PyFloat_FromDouble(as_double(*slots));
    case Kind::Bool:
      return PyBool_FromLong(static_cast<long>(*slots));
    case Kind::None:
      return known(Py_None);
    case Kind::Number:
      return box_number(slots);
    case Kind::Str:
      return box_str(slots);
    case Kind::Tuple:
      return box_tuple(context, type, slots);
    case Kind::List:
      return box_list(context, type, at_address<List>(*slots));
    case Kind::Dict:
    case Kind::Set:
      return box_dict(context, type, at_address<Dict>(*slots));
    case Kind::Array:
      return box_array(context, type, slots);
    case Kind::Scalar:
      return box_scalar(type, slots);
    case Kind::Tensor:
      return box_tensor(context, type, slots);
    case Kind::Element:
      return box_element(type, slots);
    case Kind::Union:
      return box(context, type.parts[static_cast<size_t>(slots[0])], slots + 1);
  }
  return nullptr;
}

bool write_back(Context *context, const Type &type, const int64_t *slots) {
  int64_t slot = *slots;
  if (type.kind == Kind::Tensor) {
    return note_written(at_address<PyObject>(slots[1 + 2 * type.rank]));
  }
  if (type.kind == Kind::Dict) {
    Dict *dict = at_address<Dict>(slot);
    PyDict_Clear(dict->source);
    return fill(context, type, dict->source, dict) != nullptr;
  }
  List *list = at_address<List>(slot);
  PyObject *target = list->source;
  list->source = nullptr;
  PyObject *made = box_list(context, type, list);
  list->source = target;
  int status = made ? PyList_SetSlice(target, 0, PyList_GET_SIZE(target), made) : -1;
  Py_XDECREF(made);
  return status == 0;
}

}  // namespace cuvil::native
