#include "texts.h"

#include <string>

#include "errors.h"

namespace cuvil {

namespace {

std::string about(const cuvil_tensor_info &info) {
  return "input '" + std::string(info.name) + "': ";
}

py::dtype object_type() { return py::dtype("O"); }

py::array as_objects(py::handle object, const cuvil_tensor_info &info) {
  py::module_ numpy = py::module_::import("numpy");
  if (!py::isinstance<py::array>(object)) {
    bool text = py::isinstance<py::str>(object) || py::isinstance<py::bytes>(object);
    bool listed = py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object);
    if (text || listed) return numpy.attr("array")(object, object_type());
  }
  py::array array = numpy.attr("asarray")(object);
  char kind = array.dtype().kind();
  if (kind != 'O' && kind != 'U' && kind != 'T' && kind != 'S') {
    raise("DTypeError",
          about(info) + "expected string, got " + std::string(py::str(array.dtype())));
  }
  return kind == 'O' ? array : py::array(array.attr("astype")(object_type()));
}

std::string place(py::ssize_t i) { return "element " + std::to_string(i); }

/* The str of an element. */
py::object text_of(py::handle item, py::ssize_t i, const cuvil_tensor_info &info) {
  if (PyUnicode_Check(item.ptr())) return py::reinterpret_borrow<py::object>(item);
  if (!PyBytes_Check(item.ptr())) {
    raise("DTypeError", about(info) + "expected string, got " +
                            std::string(py::str(py::type::handle_of(item).attr("__name__"))) +
                            " as " + place(i));
  }
  PyObject *text =
      PyUnicode_DecodeUTF8(PyBytes_AS_STRING(item.ptr()), PyBytes_GET_SIZE(item.ptr()), nullptr);
  if (!text) {
    PyErr_Clear();
    raise("InputError", about(info) + place(i) + " is bytes that are not UTF-8");
  }
  return py::reinterpret_steal<py::object>(text);
}

/* The bytes of a str, which it keeps for as long as it lives. */
cuvil_string bytes_of(py::handle text, py::ssize_t i, const cuvil_tensor_info &info) {
  Py_ssize_t size;
  const char *data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (!data) {
    PyErr_Clear();
    raise("InputError", about(info) + place(i) + " holds half a surrogate pair, which is no text");
  }
  return {data, size};
}

}  // namespace

py::array string_room(const py::array::ShapeContainer &shape) {
  return py::array(py::dtype("V16"), shape);
}

cuvil_value read_strings(py::handle object, const cuvil_tensor_info &info, Borrowed &borrowed) {
  py::array array = as_objects(object, info);
  if (array.ndim() != info.rank) {
    raise("ShapeMismatchError", about(info) + "expected rank " + std::to_string(info.rank) +
                                    ", got " + std::to_string(array.ndim()));
  }
  /* A list of its own: nobody takes a string away while the model runs. */
  py::list items(array.attr("ravel")().attr("tolist")());
  py::array room = string_room({static_cast<py::ssize_t>(items.size())});
  auto *strings = static_cast<cuvil_string *>(room.mutable_data());
  for (size_t k = 0; k < items.size(); k++) {
    py::ssize_t i = static_cast<py::ssize_t>(k);
    items[k] = text_of(items[k], i, info);
    strings[k] = bytes_of(items[k], i, info);
  }
  cuvil_value value = cuvil_tensor(CUVIL_STRING, strings, 0, nullptr);
  value.rank = info.rank;
  for (int d = 0; d < info.rank; d++) value.shape[d] = array.shape()[d];
  borrowed.keep(py::object(items));
  borrowed.keep(py::object(room));
  return value;
}

py::object strings_of(const cuvil_value &value) {
  const char *data = static_cast<const char *>(value.data) + value.byte_offset;
  const auto *strings = reinterpret_cast<const cuvil_string *>(data);
  py::array result(object_type(), py::array::ShapeContainer(value.shape, value.shape + value.rank));
  auto **objects = static_cast<PyObject **>(result.mutable_data());
  for (py::ssize_t i = 0; i < result.size(); i++) {
    PyObject *text = PyUnicode_DecodeUTF8(strings[i].data ? strings[i].data : "",
                                          static_cast<Py_ssize_t>(strings[i].size), nullptr);
    if (!text) throw py::error_already_set();
    PyObject *old = objects[i];
    objects[i] = text;
    Py_XDECREF(old);
  }
  return std::move(result);
}

}  // namespace cuvil
