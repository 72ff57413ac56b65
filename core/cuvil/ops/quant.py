"""Between floats and scaled codes: integers or narrow floats.

A scale for each channel is shaped to broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir import nest
from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dtypes import DTYPES, DType, dtype, from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops import scalars
from cuvil.ops.elementwise import broadcast_dims
from cuvil.ops.lowering import ElementCx, broadcast_index, highest, lowest

_SCALES = ("f16", "bf16", "f32")
_TAGS = frozenset({"pointwise", "quantization"})
_NARROW = tuple(row.name for row in DTYPES if row.is_narrow)
_SHORT = ("i8", "u8", "i16", "u16")
_CODES = (*_SHORT, *_NARROW)


def _check(what: str, t: Sequence[TensorType], code: str, zero: str) -> tuple[Any, ...]:
    """The result's dims; ValueError where operands do not fit."""
    fits = len(t) in (2, 3) and t[1].dtype.name in _SCALES
    if not fits or code not in (*_CODES, "i32") or any(k.dtype.name != zero for k in t[2:]):
        raise ValueError(f"{what} does not take {shapes(t)}")
    dims = broadcast_dims(*(k.dims for k in t))
    if len(dims) != t[0].rank:
        raise ValueError(f"{what}: scales of higher rank than the tensor: {shapes(t)}")
    return dims


def _quantize_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if a.to not in _CODES:
        raise ValueError(f"quantize_linear gives {', '.join(_CODES)}, not {a.to}")
    dims = _check("quantize_linear", t, a.to, a.to)
    if t[0].dtype.name not in ("f16", "bf16", "f32", "i32"):
        raise ValueError(f"quantize_linear does not take {shapes(t)}")
    return [TensorType.of(dims, dtype(a.to))]


def _has_zero(kind: DType) -> bool:
    """Whether a zero point counts: that of 8-bit floats is zero."""
    return not (kind.is_float and kind.bits == kind.value_bits)


def _quantize(x: Sequence[Any], a: Attrs) -> list[Any]:
    kind = dtype(a.to)
    code = x[0].astype(np.float32) / x[1].astype(np.float32)
    if a.to in _SHORT:
        zero = x[2].astype(np.float32) if len(x) > 2 else np.zeros((), np.float32)
        return [scalars.evaluate("quantize", code, zero, to=a.to)]
    if kind.is_integer:
        code = np.rint(code)
    if len(x) > 2 and _has_zero(kind):
        code = code + x[2].astype(np.float32)
    code = np.asarray(code, np.float32)
    if kind.is_float:
        return [scalars.evaluate("cast_narrow", code, to=a.to, saturate=a.saturate)]
    code = np.clip(code, lowest(kind), highest(kind))
    return [scalars.evaluate("cast", code, to=a.to)]


def _parts(cx: ElementCx, index: Sequence[Index]) -> list[Value]:
    target = cx.result_type.dims
    kinds = cx.operand_types
    return [cx.operand(i, broadcast_index(index, k.dims, target)) for i, k in enumerate(kinds)]


def _quantize_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b = cx.b
    kind = cx.result_type.dtype
    x, scale, *zero = (b.cast(v, "f32") for v in _parts(cx, index))
    code = b.scalar("div", x, scale)
    if kind.name in _SHORT:
        offset = zero[0] if zero else b.const(0, "f32")
        return b.scalar("quantize", code, offset, result=kind.name, to=kind.name)
    if kind.is_integer:
        code = b.scalar("round", code)
    if zero and _has_zero(kind):
        code = b.scalar("add", code, zero[0])
    if kind.is_float:
        how = {"to": kind.name, "saturate": cx.attrs.saturate, "round_mode": "up"}
        return b.scalar("cast_narrow", code, result=kind.name, **how)
    code = b.scalar("max", code, b.const(lowest(kind), "f32"))
    code = b.scalar("min", code, b.const(highest(kind), "f32"))
    return b.cast(code, kind.name)  # takes NaN to 0


QUANTIZE_LINEAR = Primitive(
    name="quantize_linear",  # x, scale and perhaps zero: round(x / scale) + zero, held in `to`
    infer=_quantize_type,
    evaluate=_quantize,
    attrs={"to": Attr("str"), "saturate": Attr("int", 1)},  # 8-bit floats: see `to_narrow`
    element=_quantize_element,
    tags=_TAGS,
).register()


def _dequantize_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    name = t[0].dtype.name
    return [TensorType.of(_check("dequantize_linear", t, name, name), t[1].dtype)]


def _dequantize(x: Sequence[Any], a: Attrs) -> list[Any]:
    kind = from_numpy(x[0].dtype)
    wide = np.float32 if kind.is_float else np.int32
    codes = x[0].astype(wide)
    if len(x) > 2 and not kind.is_float:
        codes = codes - x[2].astype(wide)
    value = codes.astype(np.float32) * x[1].astype(np.float32)
    return [scalars.evaluate("cast", value, to=from_numpy(x[1].dtype).name)]


def _dequantize_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b = cx.b
    x, scale, *zero = _parts(cx, index)
    floats = cx.operand_types[0].dtype.is_float
    made = x.owner
    if isinstance(made, nest.ScalarOp) and made.fn.data == "quantize":
        offset = b.cast(zero[0], "f32") if zero else b.const(0, "f32")
        value = b.scalar("mul", _whole_number(b, made, offset), b.cast(scale, "f32"))
        return b.cast(value, cx.result_type.dtype.name)
    code = b.cast(x, "f32" if floats else "i32")
    if zero and not floats:
        code = b.scalar("sub", code, b.cast(zero[0], "i32"))
    value = b.scalar("mul", b.cast(code, "f32"), b.cast(scale, "f32"))
    return b.cast(value, cx.result_type.dtype.name)


def _whole_number(b: NestBuilder, code: nest.ScalarOp, zero: Value) -> Value:
    """code - zero as a float, where the kernel has just rounded the code: it stays one."""
    x, offset = code.operands
    to = code.results[0].type.data  # type: ignore[attr-defined]
    number = b.scalar("fake_quantize", x, offset, to=to)
    return b.scalar("sub", number, b.scalar("sub", zero, offset))  # most often 0


DEQUANTIZE_LINEAR = Primitive(
    name="dequantize_linear",  # x, scale and perhaps zero: (x - zero) * scale in the scale's type
    infer=_dequantize_type,
    evaluate=_dequantize,
    element=_dequantize_element,
    tags=_TAGS,
).register()
