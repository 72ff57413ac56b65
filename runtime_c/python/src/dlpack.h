/* The parts of DLPack that reading and making tensors need; the layouts are DLPack's. */
#pragma once

#include <cstdint>

namespace cuvil {

struct DLTensor {
  void *data;
  struct {
    int32_t type, id;
  } device;
  int32_t rank;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; null is dense */
  uint64_t byte_offset;
};

/* Of DLPack's version 0. */
struct DLManagedTensor {
  DLTensor tensor;
  void *owner;
  void (*deleter)(DLManagedTensor *);
};

struct DLVersion {
  uint32_t major, minor;
};

/* Of DLPack's version 1. */
struct DLVersionedTensor {
  DLVersion version;
  void *owner;
  void (*deleter)(DLVersionedTensor *);
  uint64_t flags;
  DLTensor tensor;
};

/* What `__dlpack_c_exchange_api__` of a class of tensors holds, a capsule called
 * "dlpack_exchange_api". Functions give 0, or set a Python exception. */
struct DLExchange {
  DLVersion version;
  const DLExchange *older;
  void (*allocate)();
  void (*export_owned)();
  int (*to_object)(DLVersionedTensor *, void **object); /* takes the tensor over */
  int (*view)(void *object, DLTensor *);                /* borrowed; may be null */
  void (*current_queue)();
};

enum DLDevice { DL_CPU = 1, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11 };
enum DLCode {
  DL_INT = 0,
  DL_UINT = 1,
  DL_FLOAT = 2,
  DL_BFLOAT = 4,
  DL_BOOL = 6,
  DL_FLOAT8_E4M3FN = 10,
  DL_FLOAT8_E4M3FNUZ = 11,
  DL_FLOAT8_E5M2 = 12,
  DL_FLOAT8_E5M2FNUZ = 13,
  DL_FLOAT8_E8M0FNU = 14
};

/* Code and bits of an element type; bits are 0 where DLPack has none like it. */
struct DLType {
  uint8_t code, bits;
};

DLType dlpack_type(uint8_t dtype);

}  // namespace cuvil
