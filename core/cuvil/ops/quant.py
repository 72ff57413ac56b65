"""Between floats and scaled integers. A scale for each channel is shaped to broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dtypes import dtype, from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops import scalars
from cuvil.ops.elementwise import broadcast_dims
from cuvil.ops.lowering import ElementCx, broadcast_index

_TAGS = frozenset({"pointwise", "quantization"})
_CODES = ("i8", "u8", "i16", "u16")


def _check(what: str, t: Sequence[TensorType], code: str, zero: str) -> tuple[Any, ...]:
    """The result's dims; ValueError where operands do not fit."""
    fits = len(t) in (2, 3) and t[1].dtype.is_float and t[1].dtype.name != "f64"
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


def _quantize(x: Sequence[Any], a: Attrs) -> list[Any]:
    zero = x[2].astype(np.float32) if len(x) > 2 else np.float32(0)
    code = np.rint(x[0].astype(np.float32) / x[1].astype(np.float32)) + zero
    return [scalars.evaluate("cast", np.asarray(code, np.float32), to=a.to)]


def _parts(cx: ElementCx, index: Sequence[Index]) -> list[Value]:
    target = cx.result_type.dims
    kinds = cx.operand_types
    return [cx.operand(i, broadcast_index(index, k.dims, target)) for i, k in enumerate(kinds)]


def _quantize_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b = cx.b
    x, scale, *zero = (b.cast(v, "f32") for v in _parts(cx, index))
    code = b.scalar("round", b.scalar("div", x, scale))
    if zero:
        code = b.scalar("add", code, zero[0])
    return b.cast(code, cx.attrs.to)  # saturates, and takes NaN to 0


QUANTIZE_LINEAR = Primitive(
    name="quantize_linear",  # x, scale and perhaps zero: round(x / scale) + zero, held in `to`
    infer=_quantize_type,
    evaluate=_quantize,
    attrs={"to": Attr("str")},
    element=_quantize_element,
    tags=_TAGS,
).register()


def _dequantize_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    name = t[0].dtype.name
    return [TensorType.of(_check("dequantize_linear", t, name, name), t[1].dtype)]


def _dequantize(x: Sequence[Any], a: Attrs) -> list[Any]:
    codes = x[0].astype(np.int32)
    if len(x) > 2:
        codes = codes - x[2].astype(np.int32)
    value = codes.astype(np.float32) * x[1].astype(np.float32)
    return [scalars.evaluate("cast", value, to=from_numpy(x[1].dtype).name)]


def _dequantize_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b = cx.b
    x, scale, *zero = _parts(cx, index)
    code = b.cast(x, "i32")
    if zero:
        code = b.scalar("sub", code, b.cast(zero[0], "i32"))
    value = b.scalar("mul", b.cast(code, "f32"), b.cast(scale, "f32"))
    return b.cast(value, cx.result_type.dtype.name)


DEQUANTIZE_LINEAR = Primitive(
    name="dequantize_linear",  # x, scale and perhaps zero: (x - zero) * scale in the scale's type
    infer=_dequantize_type,
    evaluate=_dequantize,
    element=_dequantize_element,
    tags=_TAGS,
).register()
