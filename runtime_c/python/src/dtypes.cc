#include "dtypes.h"

#include <array>

namespace cuvil {

namespace {

/* Types made so far; never destroyed, since that would happen after Python's end. */
py::dtype *known[LAST_DTYPE + 1];

/* numpy has no such type of its own. */
bool is_foreign(uint8_t dtype) {
  return dtype == CUVIL_BF16 || (dtype > CUVIL_F64 && dtype != CUVIL_STRING);
}

py::dtype *make_dtype(uint8_t dtype) {
  const char *name = cuvil_dtype_name(dtype);
  if (dtype == CUVIL_STRING) return new py::dtype("O");
  if (!is_foreign(dtype)) return new py::dtype(name);
  try {
    return new py::dtype(py::dtype::from_args(py::module_::import("ml_dtypes").attr(name)));
  } catch (py::error_already_set &error) {
    if (!error.matches(PyExc_ImportError) && !error.matches(PyExc_AttributeError)) throw;
    return new py::dtype(cuvil_dtype_size(dtype) == 1 ? "uint8" : "uint16");
  }
}

/* By numpy's type number; int64 and uint64 have two numbers each. */
constexpr std::array<uint8_t, 24> builtin_types() {
  std::array<uint8_t, 24> types{};
  types[0] = CUVIL_BOOL;
  types[1] = CUVIL_I8;
  types[2] = CUVIL_U8;
  types[3] = CUVIL_I16;
  types[4] = CUVIL_U16;
  types[5] = CUVIL_I32;
  types[6] = CUVIL_U32;
  types[7] = sizeof(long) == 8 ? CUVIL_I64 : CUVIL_I32;
  types[8] = sizeof(long) == 8 ? CUVIL_U64 : CUVIL_U32;
  types[9] = CUVIL_I64;
  types[10] = CUVIL_U64;
  types[11] = CUVIL_F32;
  types[12] = CUVIL_F64;
  types[23] = CUVIL_F16;
  return types;
}

}  // namespace

py::dtype numpy_dtype(uint8_t dtype) {
  if (!known[dtype]) known[dtype] = make_dtype(dtype);
  return *known[dtype];
}

uint8_t element_type(const py::dtype &dtype) {
  static constexpr auto types = builtin_types();
  int number = dtype.num();
  char order = dtype.byteorder();
  if (order == '>') return 0;
  if (number >= 0 && number < 24) return types[static_cast<size_t>(number)];
  for (uint8_t code = CUVIL_BF16; code <= LAST_DTYPE; code++) {
    if (is_foreign(code) && dtype.is(numpy_dtype(code))) return code;
  }
  return 0;
}

}  // namespace cuvil
