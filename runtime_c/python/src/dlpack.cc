#include "dlpack.h"

#include "cuvil/cuvil.h"

namespace cuvil {

DLType dlpack_type(uint8_t dtype) {
  uint8_t bits = static_cast<uint8_t>(cuvil_dtype_size(dtype) * 8);
  switch (dtype) {
    case CUVIL_BOOL:
      return {DL_BOOL, bits};
    case CUVIL_U8:
    case CUVIL_U16:
    case CUVIL_U32:
    case CUVIL_U64:
      return {DL_UINT, bits};
    case CUVIL_BF16:
      return {DL_BFLOAT, bits};
    case CUVIL_F16:
    case CUVIL_F32:
    case CUVIL_F64:
      return {DL_FLOAT, bits};
    case CUVIL_F8E4M3FN:
      return {DL_FLOAT8_E4M3FN, bits};
    case CUVIL_F8E4M3FNUZ:
      return {DL_FLOAT8_E4M3FNUZ, bits};
    case CUVIL_F8E5M2:
      return {DL_FLOAT8_E5M2, bits};
    case CUVIL_F8E5M2FNUZ:
      return {DL_FLOAT8_E5M2FNUZ, bits};
    case CUVIL_F8E8M0:
      return {DL_FLOAT8_E8M0FNU, bits};
    case CUVIL_F4E2M1:
    case CUVIL_I4:
    case CUVIL_U4:
    case CUVIL_I2:
    case CUVIL_U2:
      return {DL_INT, 0}; /* DLPack's are packed, so that none fits */
    default:
      return {DL_INT, bits};
  }
}

}  // namespace cuvil
