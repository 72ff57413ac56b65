"""Tensors that are made of numbers."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import as_value, number
from cuvil.ops.aten.registry import aten
from cuvil.ops.aten.views import spread


def filled(cx: Cx, value: Value) -> Value:
    """The result's shape full of one number."""
    return spread(cx, as_value(cx, value, cx.result.dtype.name), cx.result.dims)


@aten("full", "full_like", "new_full", "fill.Scalar", "fill.Tensor", "prims.full_like.default",
      "prims.fill.default", "prims.full.default")  # fmt: skip
def full(cx: Cx, like: Value, *args: Value, **_: Value) -> Value:
    """One number everywhere."""
    return filled(cx, args[-1])


@aten("zeros", "zeros_like", "new_zeros")
def zeros(cx: Cx, *_: Value, **__: Value) -> Value:
    """Zeros."""
    return filled(cx, 0)


@aten("ones", "ones_like", "new_ones")
def ones(cx: Cx, *_: Value, **__: Value) -> Value:
    """Ones."""
    return filled(cx, 1)


@aten("empty.memory_format", "empty_like", "new_empty", "empty_strided", "new_empty_strided",
      "empty_permuted", "prims.empty_strided.default", "prims.empty_permuted.default")  # fmt: skip
def empty(cx: Cx, *_: Value, **__: Value) -> Value:
    """Anything: zeros."""
    return filled(cx, 0)


@aten("scalar_tensor", "prims.scalar_tensor.default")
def scalar_tensor(cx: Cx, value: Value, **_: Value) -> Value:
    """A number as a tensor."""
    return filled(cx, value)


def _progression(cx: Cx, start: Value, step: Value) -> Value:
    """start + k * step, in the type of the result; floats in f64 first, as torch has it."""
    b, kind = cx.b, cx.result.dtype
    wide = "f64" if kind.is_float else "i64"
    place = b.iota(dims=cx.result.dims, axis=0, dtype=wide)
    if step != 1:
        place = b.mul(place, number(cx, step, wide))
    if not (isinstance(start, int) and start == 0):
        place = b.add(place, number(cx, start, wide))
    return place if kind.name == wide else b.cast(place, to=kind.name)


@aten("arange")
def arange(cx: Cx, end: Value, **_: Value) -> Value:
    """0, 1, 2, ... below the end."""
    return _progression(cx, 0, 1)


@aten("arange.start")
def arange_start(cx: Cx, start: Value, end: Value, **_: Value) -> Value:
    """start, start + 1, ... below the end."""
    return _progression(cx, start, 1)


@aten("arange.start_step")
def arange_step(cx: Cx, start: Value, end: Value, step: Value = 1, **_: Value) -> Value:
    """start, start + step, ... before the end."""
    return _progression(cx, start, step)


@aten("prims.iota.default")
def iota(cx: Cx, length: Dim, *, start: Value, step: Value, **_: Value) -> Value:
    """start + k * step."""
    return _progression(cx, start, step)


def _triangle(cx: Cx, x: Value, diagonal: int, upper: bool) -> Value:
    b = cx.b
    rows, columns = cx.dims(x)[-2:]
    row = b.iota(dims=(rows, 1), axis=0)
    column = b.iota(dims=(1, columns), axis=1)
    line = b.add(row, b.scalar(diagonal, "i64")) if diagonal else row
    keep = b.ge(column, line) if upper else b.le(column, line)
    return b.select(keep, x, b.scalar(0, x))


@aten("tril")
def tril(cx: Cx, x: Value, diagonal: int = 0) -> Value:
    """The lower triangle of every matrix; zeros elsewhere."""
    return _triangle(cx, x, diagonal, False)


@aten("triu")
def triu(cx: Cx, x: Value, diagonal: int = 0) -> Value:
    """The upper triangle of every matrix; zeros elsewhere."""
    return _triangle(cx, x, diagonal, True)
