"""Element types: the one table that every level of the compiler and the ABI share.

Adding a type is one row of `DTYPES`; a narrow one also needs its two conversions (the module
`codegen.scalars.narrow` and `ops.narrow_meaning`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

__all__ = ["DTYPES", "DType", "by_abi", "dtype", "from_numpy", "from_onnx"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    `numpy` is the dtype of its values in the reference interpreter and, but for strings, in memory,
    `size` is in bytes, `kind` is one of 'bool', 'int', 'uint', 'float', 'string', `abi` is the
    value of `cuvil_dtype` in `cuvil/abi.h`, `onnx` the value of `TensorProto.DataType`,
    `value_bits` the width of the value itself: one of fewer than 8 bits lies in the low bits of a
    byte of its own, the high bits zero. Two records are equal exactly when their names are.
    A string is an object (a str) in numpy and a `cuvil_string` in memory.
    """

    name: str
    numpy: np.dtype = field(compare=False)
    size: int = field(compare=False)
    kind: str = field(compare=False)
    abi: int = field(compare=False)
    onnx: int = field(compare=False)
    value_bits: int = field(compare=False)

    @property
    def bits(self) -> int:
        """Width in memory, in bits (8 for bool)."""
        return 8 * self.size

    @property
    def align(self) -> int:
        """What the address of an element is a multiple of."""
        return min(self.size, 8)

    @property
    def is_string(self) -> bool:
        """True for strings, which move, compare, and are nothing to calculate with."""
        return self.kind == "string"

    @property
    def is_float(self) -> bool:
        """True for f16, bf16, f32, f64 and the narrow floats."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        """True for signed integers and floats."""
        return self.kind in ("int", "float")

    @property
    def is_narrow(self) -> bool:
        """True for floats of 8 and fewer bits, integers of 4 and fewer: they move and convert."""
        return self.value_bits < 8 or (self.is_float and self.value_bits == 8)

    @property
    def label(self) -> str:
        """What users read: numpy's name of the type, or "string"."""
        return "string" if self.is_string else str(self.numpy.name)

    @property
    def compute(self) -> DType:
        """The type that values have in registers: another than their own where memory is denser.

        f32 for f16, bf16 and the narrow floats, i8 and u8 for narrow integers.
        """
        return _BY_NAME[_COMPUTE.get(self.name, self.name)]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtype({self.name!r})"


STRING_BYTES = 16  # sizeof(cuvil_string)


def _row(name: str, np_type: object, kind: str, abi: int, onnx: int, value_bits: int = 0) -> DType:
    numpy_dtype = np.dtype(np_type)  # type: ignore[call-overload]
    size = STRING_BYTES if kind == "string" else numpy_dtype.itemsize
    return DType(name, numpy_dtype, size, kind, abi, onnx, value_bits or 8 * size)


DTYPES: tuple[DType, ...] = (
    _row("bool", np.bool_, "bool", 1, 9),
    _row("i8", np.int8, "int", 2, 3),
    _row("i16", np.int16, "int", 3, 5),
    _row("i32", np.int32, "int", 4, 6),
    _row("i64", np.int64, "int", 5, 7),
    _row("u8", np.uint8, "uint", 6, 2),
    _row("u16", np.uint16, "uint", 7, 4),
    _row("u32", np.uint32, "uint", 8, 12),
    _row("u64", np.uint64, "uint", 9, 13),
    _row("f16", np.float16, "float", 10, 10),
    _row("bf16", ml_dtypes.bfloat16, "float", 11, 16),
    _row("f32", np.float32, "float", 12, 1),
    _row("f64", np.float64, "float", 13, 11),
    _row("f8e4m3fn", ml_dtypes.float8_e4m3fn, "float", 14, 17),
    _row("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "float", 15, 18),
    _row("f8e5m2", ml_dtypes.float8_e5m2, "float", 16, 19),
    _row("f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "float", 17, 20),
    _row("f8e8m0", ml_dtypes.float8_e8m0fnu, "float", 18, 24),
    _row("f4e2m1", ml_dtypes.float4_e2m1fn, "float", 19, 23, value_bits=4),
    _row("i4", ml_dtypes.int4, "int", 20, 22, value_bits=4),
    _row("u4", ml_dtypes.uint4, "uint", 21, 21, value_bits=4),
    _row("i2", ml_dtypes.int2, "int", 22, 26, value_bits=2),
    _row("u2", ml_dtypes.uint2, "uint", 23, 25, value_bits=2),
    _row("string", np.object_, "string", 24, 8),
)

_BY_NAME = {row.name: row for row in DTYPES}
_COMPUTE = {"f16": "f32", "bf16": "f32"} | {
    row.name: {"float": "f32", "int": "i8", "uint": "u8"}[row.kind]
    for row in DTYPES
    if row.is_narrow
}
_BY_NUMPY = {row.numpy: row for row in DTYPES}
_BY_ONNX = {row.onnx: row for row in DTYPES}
_BY_ABI = {row.abi: row for row in DTYPES}


def dtype(name: str | DType) -> DType:
    """The record called `name` ('f32', 'bool', ...); a record is returned as it is.

    Raises KeyError naming the known types for any other name.
    """
    if isinstance(name, DType):
        return name
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"unknown element type {name!r}; known: {', '.join(_BY_NAME)}") from None


def from_numpy(value: object) -> DType:
    """The record of a numpy dtype, or of anything `np.dtype` accepts, in either byte order.

    Objects are strings, as are numpy's own types of text. Raises KeyError for a dtype without a
    record (complex numbers, dates ...).
    """
    numpy_dtype = np.dtype(value)  # type: ignore[call-overload]
    if numpy_dtype.kind in "UT":
        return _BY_NAME["string"]
    found = _BY_NUMPY.get(numpy_dtype) or _BY_NUMPY.get(numpy_dtype.newbyteorder("="))
    if found is None:
        raise KeyError(f"no element type for numpy dtype {numpy_dtype}")
    return found


def from_onnx(code: int) -> DType:
    """The record of an ONNX `TensorProto.DataType` value; KeyError when there is none."""
    try:
        return _BY_ONNX[code]
    except KeyError:
        raise KeyError(f"no element type for ONNX data type {code}") from None


def by_abi(code: int) -> DType:
    """The record of a `cuvil_dtype` value of the C ABI; KeyError when there is none."""
    try:
        return _BY_ABI[code]
    except KeyError:
        raise KeyError(f"no element type for cuvil_dtype {code}") from None
