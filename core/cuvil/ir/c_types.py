"""What an element type is called in C: in headers, and in the functions of custom operators."""

from cuvil.ir.dtypes import DTYPES

C_TYPES = {
    "bool": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "f16": "uint16_t", "bf16": "uint16_t", "f32": "float", "f64": "double",
    "string": "cuvil_string",
} | {row.name: "uint8_t" for row in DTYPES if row.is_narrow}  # fmt: skip
