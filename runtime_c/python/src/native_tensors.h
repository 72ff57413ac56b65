/* torch's tensors on the cpu as values of compiled functions: they lie as arrays do. */
#ifndef CUVIL_NATIVE_TENSORS_H
#define CUVIL_NATIVE_TENSORS_H

#include "native_context.h"

namespace cuvil::native {

bool unbox_tensor(const Type &type, PyObject *object, int64_t *slots);

PyObject *box_tensor(Context *context, const Type &type, const int64_t *slots);
PyObject *box_element(const Type &type, const int64_t *slots);

/* Tells torch that a tensor's memory was written. False: an exception. */
bool note_written(PyObject *tensor);

/* The type text of a tensor, empty where there is none for it. */
std::string tensor_text(PyObject *object);

/* Adds use_tensors(Tensor, view, share, element, written) and tensor_text(object) to a module.
 * view(tensor, address, extents, strides in bytes) is a part of a tensor, share(array) a tensor in
 * an array's memory, element(scalar) one of rank 0; written(tensor) counts its version. */
int define_tensors(PyObject *module);

}  // namespace cuvil::native
#endif
