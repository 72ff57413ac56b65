#include "dtypes.h"

static const uint8_t sizes[] = {
    [CUVIL_BOOL] = 1,   [CUVIL_I8] = 1,         [CUVIL_I16] = 2,
    [CUVIL_I32] = 4,    [CUVIL_I64] = 8,        [CUVIL_U8] = 1,
    [CUVIL_U16] = 2,    [CUVIL_U32] = 4,        [CUVIL_U64] = 8,
    [CUVIL_F16] = 2,    [CUVIL_BF16] = 2,       [CUVIL_F32] = 4,
    [CUVIL_F64] = 8,    [CUVIL_F8E4M3FN] = 1,   [CUVIL_F8E4M3FNUZ] = 1,
    [CUVIL_F8E5M2] = 1, [CUVIL_F8E5M2FNUZ] = 1, [CUVIL_F8E8M0] = 1,
    [CUVIL_F4E2M1] = 1, [CUVIL_I4] = 1,         [CUVIL_U4] = 1,
    [CUVIL_I2] = 1,     [CUVIL_U2] = 1,         [CUVIL_STRING] = sizeof(cuvil_string),
};

uint32_t cuvil_dtype_size(uint8_t dtype) { return dtype < sizeof sizes ? sizes[dtype] : 0; }

uint32_t cuvil_dtype_align(uint8_t dtype) {
  return dtype == CUVIL_STRING ? (uint32_t)_Alignof(cuvil_string) : cuvil_dtype_size(dtype);
}
