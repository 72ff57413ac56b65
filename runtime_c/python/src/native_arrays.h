/* numpy's arrays and scalars as values of compiled functions. */
#ifndef CUVIL_NATIVE_ARRAYS_H
#define CUVIL_NATIVE_ARRAYS_H

#include "native_context.h"

namespace cuvil::native {

bool unbox_array(const Type &type, PyObject *object, int64_t *slots);
bool unbox_scalar(const Type &type, PyObject *object, int64_t *slots);
PyObject *box_array(Context *context, const Type &type, const int64_t *slots);
PyObject *box_scalar(const Type &type, const int64_t *slots);

/* The type text of an array or numpy scalar, empty where there is none for it. */
std::string array_text(PyObject *object);

}  // namespace cuvil::native
#endif
