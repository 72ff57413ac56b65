#include "text.h"

#include <stdint.h>

#include "cuvil/cuvil.h"

typedef struct writer {
  char *at, *end; /* end: the last byte, kept for the closing zero */
} writer;

static void put(writer *w, char c) {
  if (w->at < w->end) *w->at++ = c;
}

static void put_string(writer *w, const char *text) {
  for (text = text ? text : "?"; *text; text++) put(w, *text);
}

static void put_integer(writer *w, int64_t value) {
  char digits[20];
  int count = 0;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  if (value < 0) put(w, '-');
  do {
    digits[count++] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  while (count) put(w, digits[--count]);
}

void cuvil_format_list(char *out, size_t room, const char *format, va_list arguments) {
  if (!out || !room) return;
  writer w = {out, out + room - 1};
  for (; *format; format++) {
    if (*format != '%') {
      put(&w, *format);
    } else if (*++format == 's') {
      put_string(&w, va_arg(arguments, const char *));
    } else {
      put_integer(&w, va_arg(arguments, int64_t));
    }
  }
  *w.at = 0;
}

void cuvil_format(char *out, size_t room, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  cuvil_format_list(out, room, format, arguments);
  va_end(arguments);
}

const char *cuvil_status_text(cuvil_status status) {
  switch (status) {
    case CUVIL_OK:
      return "ok";
    case CUVIL_INVALID_ARGUMENT:
      return "invalid argument";
    case CUVIL_DTYPE_MISMATCH:
      return "element type mismatch";
    case CUVIL_RANK_MISMATCH:
      return "rank mismatch";
    case CUVIL_SHAPE_MISMATCH:
      return "shape mismatch";
    case CUVIL_NEED_MEMORY:
      return "more memory needed";
    case CUVIL_OUT_OF_MEMORY:
      return "out of memory";
    case CUVIL_BAD_ARTEFACT:
      return "bad artefact";
    case CUVIL_UNSUPPORTED_CPU:
      return "unsupported cpu";
    case CUVIL_INDEX_OUT_OF_RANGE:
      return "index out of range";
    case CUVIL_CANCELLED:
      return "cancelled";
    case CUVIL_TIMED_OUT:
      return "time limit exceeded";
    case CUVIL_INTERNAL:
      return "internal error";
    case CUVIL_IO_ERROR:
      return "input/output error";
    case CUVIL_CUSTOM_FAILED:
      return "custom operator failed";
  }
  return "unknown status";
}

/* As numpy and ml_dtypes have them. */
static const char *const dtype_names[] = {
    [CUVIL_BOOL] = "bool",
    [CUVIL_I8] = "int8",
    [CUVIL_I16] = "int16",
    [CUVIL_I32] = "int32",
    [CUVIL_I64] = "int64",
    [CUVIL_U8] = "uint8",
    [CUVIL_U16] = "uint16",
    [CUVIL_U32] = "uint32",
    [CUVIL_U64] = "uint64",
    [CUVIL_F16] = "float16",
    [CUVIL_BF16] = "bfloat16",
    [CUVIL_F32] = "float32",
    [CUVIL_F64] = "float64",
    [CUVIL_F8E4M3FN] = "float8_e4m3fn",
    [CUVIL_F8E4M3FNUZ] = "float8_e4m3fnuz",
    [CUVIL_F8E5M2] = "float8_e5m2",
    [CUVIL_F8E5M2FNUZ] = "float8_e5m2fnuz",
    [CUVIL_F8E8M0] = "float8_e8m0fnu",
    [CUVIL_F4E2M1] = "float4_e2m1fn",
    [CUVIL_I4] = "int4",
    [CUVIL_U4] = "uint4",
    [CUVIL_I2] = "int2",
    [CUVIL_U2] = "uint2",
    [CUVIL_STRING] = "string",
};
enum { DTYPE_COUNT = sizeof dtype_names / sizeof dtype_names[0] };

const char *cuvil_dtype_name(uint8_t dtype) {
  return dtype < DTYPE_COUNT && dtype_names[dtype] ? dtype_names[dtype] : "?";
}
