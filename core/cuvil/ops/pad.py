"""Padding and cropping, by a value or by the tensor's own elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import ElementCx, both, clamp, guarded, inside, where_any

MODES = ("constant", "reflect", "edge", "wrap")


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if len(t) != 2 or t[1].rank != 0 or t[1].dtype != t[0].dtype:
        raise ValueError(f"pad takes a tensor and a fill value of its dtype, not {shapes(t)}")
    if not len(a.low) == len(a.high) == t[0].rank:
        raise ValueError(f"pad needs a low and a high number for each of {t[0].rank} axes")
    if a.mode not in MODES:
        raise ValueError(f"unknown pad mode '{a.mode}'; known: {', '.join(MODES)}")
    dims = [d + lo + hi for d, lo, hi in zip(t[0].dims, a.low, a.high, strict=True)]
    for axis, (d, lo, hi, size) in enumerate(zip(t[0].dims, a.low, a.high, dims, strict=True)):
        if isinstance(size, int) and size < 0:
            raise ValueError(f"pads {lo} and {hi} crop more than axis {axis} of {d} has")
        if a.mode != "constant" and all(isinstance(v, int) for v in (d, lo, hi)):
            _check_rest(axis, d, lo, hi)  # type: ignore[arg-type]
    return [t[0].with_dims(dims)]


def _check_rest(axis: int, extent: int, low: int, high: int) -> None:
    if extent + min(low, 0) + min(high, 0) < 1 and (low > 0 or high > 0):
        raise ValueError(f"pads {low} and {high} leave nothing of axis {axis} to repeat")


def _positions(extent: int, low: int, high: int, mode: str) -> Any:
    """The source position of every element of a padded axis, by the rule of `mode`."""
    first = max(-low, 0)
    rest = extent - first - max(-high, 0)
    at = np.arange(extent + low + high) - max(low, 0)
    if mode == "edge":
        return first + np.clip(at, 0, max(rest - 1, 0))
    if mode == "wrap":
        return first + at % max(rest, 1)
    period = 2 * (rest - 1)
    folded = at % period if period > 0 else at * 0
    return first + np.minimum(folded, period - folded)


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    data, fill = x
    if a.mode != "constant":
        for axis, (lo, hi) in enumerate(zip(a.low, a.high, strict=True)):
            _check_rest(axis, data.shape[axis], lo, hi)
            data = np.take(data, _positions(data.shape[axis], lo, hi, a.mode), axis)
        return [data]
    sizes = [d + lo + hi for d, lo, hi in zip(data.shape, a.low, a.high, strict=True)]
    result = np.full(sizes, fill, data.dtype)
    source, target = [], []
    for d, lo, hi in zip(data.shape, a.low, a.high, strict=True):
        first, last = max(-lo, 0), d - max(-hi, 0)
        source.append(slice(min(first, d), max(last, first)))
        target.append(slice(max(lo, 0), max(lo, 0) + max(last - first, 0)))
    result[tuple(target)] = data[tuple(source)]
    return [result]


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    a, dims = cx.attrs, cx.operand_types[0].dims
    axes = list(zip(index, dims, a.low, a.high, strict=True))
    if a.mode != "constant":
        return cx.operand(0, [_repeated(cx, *axis) for axis in axes])
    b = cx.b
    conditions: list[Value | None] = []
    safe: list[Index] = []
    for i, extent, low, high in axes:
        at = b.sub(i, b.dim(low))
        known = isinstance(low, int) and isinstance(high, int) and low <= 0 and high <= 0
        conditions.append(None if known else inside(b, at, extent))
        safe.append(at if known else clamp(b, at, extent))
    found = both(b, *conditions)
    fill = cx.operand(1, ())
    if found is None:
        return cx.operand(0, safe)
    padded = [d for _, d, low, high in axes if low != 0 or high != 0]
    name = cx.result_type.dtype.name
    return guarded(b, found, where_any(b, padded, name, lambda: cx.operand(0, safe)), fill)


def _repeated(cx: ElementCx, index: Index, extent: Dim, low: Dim, high: Dim) -> Index:
    """The source position of an element of an axis padded by its own elements."""
    if low == 0 and high == 0:
        return index
    b = cx.b
    before, cut = b.index("max", b.dim(low), 0), b.index("max", b.dim(-low), 0)
    cut_above = b.index("max", b.dim(-high), 0)
    rest = b.sub(b.sub(b.dim(extent), cut), cut_above)
    at = b.sub(index, before)
    if cx.attrs.mode == "edge":
        at = b.index("max", b.index("min", at, b.sub(rest, 1)), 0)
    elif cx.attrs.mode == "wrap":
        at = _modulo(cx, at, before, rest)
    else:
        at = _reflected(cx, at, before, rest, _small(extent, low, high))
    return b.add(cut, at)


def _small(extent: Dim, low: Dim, high: Dim) -> bool:
    """Whether one reflection at either end is enough, so that nothing is divided."""
    if not (isinstance(extent, int) and isinstance(low, int) and isinstance(high, int)):
        return False
    rest = extent + min(low, 0) + min(high, 0)
    return max(low, high) < rest


def _reflected(cx: ElementCx, at: Index, before: Index, rest: Index, small: bool) -> Index:
    b = cx.b
    period = b.mul(b.sub(rest, 1), 2)
    at = b.index("max", at, b.sub(0, at)) if small else _modulo(cx, at, before, period)
    return b.index("min", at, b.sub(period, at))


def _modulo(cx: ElementCx, at: Index, before: Index, period: Index) -> Index:
    """at mod period for at >= -before: whole periods are added first; 0 for a period of 0."""
    b = cx.b
    divisor = b.index("max", period, 1)
    whole = b.mul(b.div(b.add(before, b.sub(divisor, 1)), divisor), period)
    return b.mod(b.add(at, b.index("max", whole, before)), divisor)


PAD = Primitive(
    name="pad",  # operands x and a fill value; a negative number crops, and cropping comes first
    infer=_infer,
    evaluate=_evaluate,
    attrs={"low": Attr("dims"), "high": Attr("dims"), "mode": Attr("str", "constant")},
    element=_element,
    tags=frozenset({"view"}),
).register()
