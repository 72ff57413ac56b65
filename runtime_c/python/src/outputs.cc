#include "outputs.h"

#include <algorithm>
#include <string>

#include "dtypes.h"
#include "errors.h"
#include "texts.h"

namespace cuvil {

namespace {

bool has_shape(const py::array &array, const cuvil_value &value) {
  return array.ndim() == value.rank &&
         std::equal(array.shape(), array.shape() + value.rank, value.shape);
}

std::string shape_text(const cuvil_value &value) {
  std::string text = "(";
  for (int d = 0; d < value.rank; d++) text += (d ? ", " : "") + std::to_string(value.shape[d]);
  return text + (value.rank == 1 ? ",)" : ")");
}

py::array::ShapeContainer shape_of(const cuvil_value &value) {
  return py::array::ShapeContainer(value.shape, value.shape + value.rank);
}

bool is_unbounded(const cuvil_value &value) {
  return std::any_of(value.shape, value.shape + value.rank, [](int64_t d) { return d < 0; });
}

int64_t bytes_of(const cuvil_tensor_info &info, const cuvil_value &value) {
  int64_t bytes = cuvil_dtype_size(info.dtype);
  for (int d = 0; d < value.rank; d++) bytes *= value.shape[d];
  return bytes;
}

bool share_memory(const cuvil_tensor_info &a, const cuvil_value &x, const cuvil_tensor_info &b,
                  const cuvil_value &y) {
  const char *p = static_cast<const char *>(x.data) + x.byte_offset;
  const char *q = static_cast<const char *>(y.data) + y.byte_offset;
  int64_t m = bytes_of(a, x), n = bytes_of(b, y);
  return m > 0 && n > 0 && p < q + n && q < p + m;
}

}  // namespace

void check_apart(const cuvil_artefact &a, const cuvil_value *inputs, const cuvil_value *outputs) {
  for (uint32_t i = 0; i < a.output_count; i++) {
    std::string about = "output '" + std::string(a.outputs[i].name) + "' shares memory with ";
    for (uint32_t k = 0; k < a.input_count; k++) {
      if (share_memory(a.outputs[i], outputs[i], a.inputs[k], inputs[k])) {
        raise("InputError", about + "input '" + a.inputs[k].name + "'");
      }
    }
    for (uint32_t k = 0; k < i; k++) {
      if (share_memory(a.outputs[i], outputs[i], a.outputs[k], outputs[k])) {
        raise("InputError", about + "output '" + a.outputs[k].name + "'");
      }
    }
  }
}

py::object make_output(const cuvil_tensor_info &info, cuvil_value &value) {
  if (is_unbounded(value)) {
    value = cuvil_output(nullptr, 0);
    return py::none();
  }
  bool strings = info.dtype == CUVIL_STRING;
  py::array array =
      strings ? string_room(shape_of(value)) : py::array(numpy_dtype(info.dtype), shape_of(value));
  value.data = array.mutable_data();
  return array;
}

void use_output(py::handle object, const cuvil_tensor_info &info, cuvil_value &value) {
  std::string about = "output '" + std::string(info.name) + "': ";
  if (info.dtype == CUVIL_STRING) raise("InputError", about + "strings are always new arrays");
  if (!py::isinstance<py::array>(object)) raise("InputError", about + "expected a numpy array");
  auto array = py::reinterpret_borrow<py::array>(object);
  constexpr int usable = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ |
                         py::detail::npy_api::NPY_ARRAY_ALIGNED_ |
                         py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  if (element_type(array.dtype()) != info.dtype && !array.dtype().is(numpy_dtype(info.dtype))) {
    raise("DTypeError", about + "expected " + cuvil_dtype_name(info.dtype) + ", got " +
                            std::string(py::str(array.dtype())));
  }
  if (is_unbounded(value)) raise("InputError", about + "its shape is known after the run only");
  if (!has_shape(array, value)) {
    raise("ShapeMismatchError", about + "expected shape " + shape_text(value) + ", got " +
                                    std::string(py::str(array.attr("shape"))));
  }
  if ((array.flags() & usable) != usable) {
    raise("InputError", about + "expected a dense, aligned, writeable array");
  }
  value.data = array.mutable_data();
}

py::object finish_output(py::object object, const cuvil_tensor_info &info,
                         const cuvil_value &value) {
  if (info.dtype == CUVIL_STRING) return strings_of(value);
  if (!object.is_none()) {
    auto array = py::reinterpret_borrow<py::array>(object);
    if (has_shape(array, value)) return object;
  }
  const char *data = static_cast<const char *>(value.data) + value.byte_offset;
  return py::array(numpy_dtype(info.dtype), shape_of(value), data); /* copies */
}

}  // namespace cuvil
