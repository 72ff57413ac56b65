"""Constants, tensors made from shapes, and casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.dims import Dim, SymDim, ceil_div, dim_max
from cuvil.ir.dtypes import dtype
from cuvil.ops.narrow_meaning import ROUND_MODES
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import as_i64, extents
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("Constant")
def constant(
    cx: Cx,
    *,
    value: Any = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
    sparse_value: Any = None,
) -> Value:
    """The tensor that one of the attributes holds."""
    given = [value, value_float, value_floats, value_int, value_ints, value_string, value_strings]
    if sparse_value is not None:
        cx.fail("sparse constants are not supported")
    if sum(v is not None for v in given) != 1:
        cx.bad("needs exactly one value")
    if value is not None:
        return cx.tensor(value)
    numbers = next(v for v in given if v is not None)
    if value_string is not None or value_strings is not None:
        return cx.b.const(np.array(numbers, object))
    floats = value_float is not None or value_floats is not None
    return cx.b.const(np.array(numbers, np.float32 if floats else np.int64))


@onnx_op("ConstantOfShape", since=9)
def constant_of_shape(cx: Cx, shape: Value, *, value: Any = None) -> Value:
    """One value everywhere, by default 0.0."""
    scalar = cx.b.const(np.float32(0)) if value is None else cx.tensor(value)
    dims = extents(cx, shape, "the shape")
    return filled(cx, cx.b.reshape(scalar, dims=()), dims)


def filled(cx: Cx, scalar: Value, dims: Sequence[Dim]) -> Value:
    """A rank-0 value at every place of a shape."""
    return cx.b.broadcast(scalar, dims=dims)


@onnx_op("EyeLike", since=9)
def eye_like(cx: Cx, x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    """Ones on diagonal k of a matrix."""
    kind = cx.type(x).dtype.name if dtype is None else cx.dtype(dtype)
    dims = cx.dims(x)
    if len(dims) != 2:
        cx.bad(f"takes a matrix, not rank {len(dims)}")
    rows, columns = cx.b.iota(dims=(dims[0], 1), axis=0), cx.b.iota(dims=(1, dims[1]), axis=1)
    return cx.b.cast(cx.b.eq(cx.b.add(rows, cx.b.scalar(k, "i64")), columns), to=kind)


@onnx_op("Range", since=11)
def range_(cx: Cx, start: Value, limit: Value, delta: Value) -> Value:
    """start, start + delta, ... before limit."""
    kind = cx.type(start).dtype
    if all(cx.known(v) is not None for v in (start, limit, delta)):
        count = _range_count(cx, start, limit, delta)
    else:
        count = _found_count(cx, *(_scalar(cx, v) for v in (start, limit, delta)))
    steps = cx.b.iota(dims=(count,), axis=0, dtype="i64")
    place = steps if kind.name == "i64" else cx.b.cast(steps, to=kind.name)
    return cx.b.add(cx.b.mul(place, _scalar(cx, delta)), _scalar(cx, start))


def _found_count(cx: Cx, start: Value, limit: Value, delta: Value) -> Dim:
    """ceil((limit - start) / delta), or 0, as the run finds it; a delta of 0 fails it."""
    b, kind = cx.b, cx.type(start).dtype
    if kind.is_float:
        wide_ = [b.cast(v, to="f64") for v in (start, limit, delta)]
        step = wide_[2]
        steps = b.ceil(b.div(b.sub(wide_[1], wide_[0]), step))
        count = b.cast(b.max(steps, b.scalar(0, steps)), to="i64")
    else:
        first, last, step = (as_i64(cx, v) for v in (start, limit, delta))
        zero, one = b.scalar(0, "i64"), b.scalar(1, "i64")
        span = b.select(b.lt(step, zero), b.sub(first, last), b.sub(last, first))
        size = b.max(b.abs(step), one)
        count = b.div(b.add(b.max(span, zero), b.sub(size, one)), size)
    endless = b.eq(step, b.scalar(0, step))
    return cx.bind(b.select(endless, b.scalar(-1, "i64"), count), "steps")


def _scalar(cx: Cx, x: Value) -> Value:
    return x if cx.type(x).rank == 0 else cx.b.reshape(x, dims=())


def _range_count(cx: Cx, start: Value, limit: Value, delta: Value) -> Dim:
    first, end, step = (known_scalar(cx, v) for v in (start, limit, delta))
    if step == 0:
        cx.bad("delta is 0")
    bounds = (first, end, step)
    if not any(isinstance(v, SymDim) for v in bounds):
        return max(int(np.ceil((end - first) / step)), 0)
    if isinstance(step, SymDim) or any(isinstance(v, float) and v % 1 for v in bounds):
        cx.fail("the number of steps is not an expression of whole numbers")
    first, end, step = (int(v) if isinstance(v, float) else v for v in bounds)
    count = ceil_div(end - first, step) if step > 0 else ceil_div(first - end, -step)
    return dim_max(count, 0)


def known_scalar(cx: Cx, value: Value) -> Any:
    """One number or Dim that the compiler must know."""
    array = cx.known(value)
    if array is None or array.size != 1:
        return cx.known_ints(value, "a bound of the range")[0]
    item = array.ravel()[0]
    if isinstance(item, int | SymDim):
        return item
    number = getattr(item, "num", item)  # a float that is a dimension: whole where den is 1
    if getattr(item, "den", 1) != 1:
        cx.fail("a bound of the range is a fraction of a symbolic dimension")
    return number.item() if isinstance(number, np.generic) else number


@onnx_op("Cast")
def cast_by_name(cx: Cx, x: Value, *, to: str) -> Value:
    """The type by its name, before opset 6."""
    names = {"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7}
    names |= {"BOOL": 9, "FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13}
    if to not in names:
        cx.fail(f"element type {to} is not supported")
    return cast(cx, x, to=names[to])


@onnx_op("Cast", since=6)
def cast(cx: Cx, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    """The elements in another type; saturate and round_mode concern 8-bit floats only."""
    return _cast_to(cx, x, cx.dtype(to), saturate, round_mode)


@onnx_op("CastLike", since=15)
def cast_like(cx: Cx, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    """The elements in the type of another tensor."""
    return _cast_to(cx, x, cx.type(like).dtype.name, saturate, round_mode)


def _cast_to(cx: Cx, x: Value, kind: str, saturate: int, round_mode: str) -> Value:
    if round_mode not in ROUND_MODES:
        cx.bad(f"round_mode '{round_mode}'; known: {', '.join(ROUND_MODES)}")
    of, to = cx.type(x).dtype, dtype(kind)
    if of == to:
        return x
    if of.is_string or to.is_string:
        cx.fail(f"a cast from {of.label} to {to.label} is not supported")
    usual = saturate and round_mode == "up"
    if usual or not to.is_narrow or to.is_integer:
        return cx.b.cast(x, to=kind)
    x = cx.b.cast(x, to=of.compute.name) if of.is_narrow else x
    return cx.b.cast_narrow(x, to=kind, saturate=saturate, round_mode=round_mode)


@onnx_op("BitCast", since=26)
def bit_cast(cx: Cx, x: Value, *, to: int) -> Value:
    """The bits of the elements as another type of the same width."""
    of, kind = cx.type(x).dtype, cx.dtype(to)
    if of.name == kind:
        return x
    if of.value_bits != dtype(kind).value_bits:
        cx.bad(f"{of.name} and {kind} differ in width")
    return cx.b.bitcast(x, of=of.name, to=kind)
