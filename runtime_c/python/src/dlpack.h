/* The part of DLPack's version 0 that reading a tensor needs; the layout is DLPack's. */
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

struct DLManagedTensor {
  DLTensor tensor;
  void *owner;
  void (*deleter)(DLManagedTensor *);
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

}  // namespace cuvil
