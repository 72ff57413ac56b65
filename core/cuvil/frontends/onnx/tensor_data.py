"""Checked reading of a TensorProto's dtype, shape and values, without onnx's own helpers."""

from __future__ import annotations

import math

import numpy as np
import onnx

from cuvil.errors import ModelError, UnsupportedError
from cuvil.ir import dtypes

__all__ = [
    "check_values",
    "dtype_of",
    "packed_bytes",
    "shape_of",
    "storage_of",
    "texts_of",
    "typed_values",
    "unpacked",
]

MAX_RANK = 32  # numpy stops at 64, and views add dimensions
_MAX_BYTES = (1 << 63) - 1

_NARROW = tuple(row.name for row in dtypes.DTYPES if row.is_narrow)

# Field that holds values when raw_data does not -> the types it serves (onnx.proto, TensorProto).
_FIELDS = {
    "float_data": ("f32",),
    "double_data": ("f64",),
    "int64_data": ("i64",),
    "uint64_data": ("u32", "u64"),
    "int32_data": ("i32", "i16", "i8", "u16", "u8", "bool", "f16", "bf16", *_NARROW),
}
_FIELD_OF = {name: field for field, names in _FIELDS.items() for name in names}
# Stored as the bit pattern in an int32, several elements of less than a byte together.
_BITS = {"f16": np.uint16, "bf16": np.uint16} | dict.fromkeys(_NARROW, np.uint8)


def dtype_of(proto: onnx.TensorProto, where: str) -> dtypes.DType:
    """The element type. ModelError for a code ONNX lacks, UnsupportedError for one Cuvil lacks."""
    try:
        return dtypes.from_onnx(proto.data_type)
    except KeyError:
        pass
    names = {code: name for name, code in onnx.TensorProto.DataType.items()}
    if proto.data_type in names and proto.data_type != onnx.TensorProto.UNDEFINED:
        raise UnsupportedError(f"{where}: tensors of {names[proto.data_type]} are not supported")
    raise ModelError(f"{where}: unknown data type {proto.data_type}")


def shape_of(proto: onnx.TensorProto, dtype: dtypes.DType, where: str) -> tuple[int, ...]:
    """The extents: at most 32, none negative, and few enough bytes for 63 bits."""
    shape = tuple(proto.dims)
    if len(shape) > MAX_RANK:
        raise ModelError(f"{where}: rank {len(shape)}, the limit is {MAX_RANK}")
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{where}: negative extent in shape {list(shape)}")
    # Zeros aside: numpy also refuses [0, 2**62, 2**62].
    if math.prod(extent or 1 for extent in shape) * dtype.size > _MAX_BYTES:
        raise ModelError(f"{where}: shape {list(shape)} overflows 63 bits of bytes")
    return shape


def storage_of(proto: onnx.TensorProto, where: str) -> str | None:
    """Where the values are: 'raw_data', 'external_data', 'float_data' ...; None when nowhere.

    ModelError when they are in several places, or in segments.
    """
    used = [field for field in (*_FIELDS, "string_data") if len(getattr(proto, field))]
    if proto.HasField("raw_data"):
        used.append("raw_data")
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        used.append("external_data")
    if len(used) > 1:
        raise ModelError(f"{where}: values in {' and '.join(used)} at once")
    if proto.HasField("segment"):
        raise ModelError(f"{where}: tensors in segments are not part of ONNX any more")
    return used[0] if used else None


def typed_values(
    proto: onnx.TensorProto, field: str | None, dtype: dtypes.DType, where: str
) -> memoryview:
    """The row-major bytes of values kept in `field`: `float_data`, `int64_data` and so on.

    Elements of less than a byte are packed, as everywhere in the file.
    """
    if field is None:
        return memoryview(b"")
    if field != _FIELD_OF[dtype.name]:
        raise ModelError(f"{where}: {dtype} values belong in {_FIELD_OF[dtype.name]}, not {field}")
    values = getattr(proto, field)
    stored = np.dtype(_BITS.get(dtype.name, dtype.numpy))
    wide = {"int32_data": np.int32, "uint64_data": np.uint64}.get(field, stored)
    array = np.fromiter(values, wide, count=len(values))
    narrow = array.astype(stored)
    if not np.array_equal(narrow.astype(wide), array, equal_nan=dtype.is_float):
        raise ModelError(f"{where}: a value in {field} does not fit {dtype}")
    return narrow.view(np.uint8).data


def texts_of(proto: onnx.TensorProto, where: str) -> np.ndarray:
    """The strings of a tensor of them; ModelError where they are no UTF-8 or of another number."""
    shape = shape_of(proto, dtype_of(proto, where), where)
    storage = storage_of(proto, where)
    if storage not in (None, "string_data"):
        raise ModelError(f"{where}: string values belong in string_data, not {storage}")
    if len(proto.string_data) != math.prod(shape):
        raise ModelError(f"{where}: {len(proto.string_data)} strings for shape {list(shape)}")
    result = np.empty(len(proto.string_data), object)
    for i, data in enumerate(proto.string_data):
        try:
            result[i] = data.decode()
        except UnicodeDecodeError:
            raise ModelError(f"{where}: string {data[:40]!r} is not UTF-8") from None
    return result.reshape(shape)


def packed_bytes(dtype: dtypes.DType, shape: tuple[int, ...]) -> int:
    """The bytes of a tensor in the file."""
    return -(-math.prod(shape) * min(dtype.value_bits, dtype.bits) // 8)


def unpacked(
    data: memoryview | bytes, dtype: dtypes.DType, shape: tuple[int, ...], where: str
) -> memoryview:
    """One byte for each element of a type of fewer than 8 bits, of which the file packs several.

    The first element of a byte lies in its low bits. ModelError for another number of bytes.
    """
    expected = packed_bytes(dtype, shape)
    if len(data) != expected:
        raise ModelError(f"{where}: {len(data)} bytes of data, {dtype}{list(shape)} has {expected}")
    step = dtype.value_bits
    shifts = np.arange(0, 8, step, dtype=np.uint8)
    elements = (np.frombuffer(data, np.uint8)[:, None] >> shifts) & np.uint8(2**step - 1)
    return elements.reshape(-1)[: math.prod(shape)].data


def check_values(
    data: memoryview | bytes, dtype: dtypes.DType, shape: tuple[int, ...], where: str
) -> None:
    """ModelError unless `data` holds exactly the elements of `shape`, booleans as 0 and 1."""
    expected = math.prod(shape) * dtype.size
    if len(data) != expected:
        raise ModelError(f"{where}: {len(data)} bytes of data, {dtype}{list(shape)} has {expected}")
    if dtype.kind == "bool" and expected and np.frombuffer(data, np.uint8).max() > 1:
        raise ModelError(f"{where}: a boolean that is neither 0 nor 1")
