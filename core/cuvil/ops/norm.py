"""Layer norm and RMS norm over the last axes: two passes, the mean first.

The mean of a row of large, nearly equal numbers is off by more than they differ. So the second
pass also adds up what is left of it, and both the variance and the result are corrected by that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, product
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import KernelCx, Scratch, axis_in, broadcast_index, for_each, loops


def _infer(centred: bool, t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    what = "layer_norm" if centred else "rms_norm"
    if not 1 <= len(t) <= (3 if centred else 2) or not t[0].dtype.is_float:
        raise ValueError(f"{what} does not take {shapes(t)}")
    axis = axis_in(a.axis, t[0].rank, what)
    for kind in t[1:]:
        if kind.dtype != t[0].dtype or not _fits(kind.dims, t[0].dims[axis:]):
            raise ValueError(
                f"{what}: {shapes([kind])} does not scale {shapes(t[:1])} from axis {axis}"
            )
    return [t[0]]


def _fits(dims: Sequence[Dim], inner: Sequence[Dim]) -> bool:
    """Whether a scale may have these dims: those it scales, 1 in places, leading ones left out."""
    return len(dims) <= len(inner) and all(
        d == 1 or d == w or not (isinstance(d, int) and isinstance(w, int))
        for d, w in zip(dims, inner[len(inner) - len(dims) :], strict=True)
    )


def _evaluate(centred: bool, x: Sequence[Any], a: Attrs) -> list[Any]:
    data, axes = x[0].astype(np.float64), tuple(range(a.axis, x[0].ndim))
    if centred:
        data = data - _mean(data, axes)
    result = data / np.sqrt(_mean(data * data, axes) + a.epsilon)
    if len(x) > 1:
        result = result * x[1].astype(np.float64)
    if len(x) > 2:
        result = result + x[2].astype(np.float64)
    return [result.astype(x[0].dtype)]


def _mean(data: Any, axes: tuple[int, ...]) -> Any:
    """The mean; NaN, without a warning, of no elements."""
    return data.sum(axes, keepdims=True) / np.float64(np.prod([data.shape[i] for i in axes]))


def _kernel(centred: bool, cx: KernelCx) -> None:
    b, dims, name = cx.b, cx.result_type.dims, cx.result_type.dtype.compute.name
    inner = dims[cx.attrs.axis :]
    at = cx.tasks(dims[: cx.attrs.axis])
    row = cx.scratch(product(inner), name)
    share = b.scalar("reciprocal", b.cast(b.from_index(b.dim(product(inner)), "i64"), name))
    if centred:
        mean = b.scalar("mul", _read(cx, row, at, inner, square=False), share)
        rest, squares = _moments(cx, row, inner, mean)
        rest = b.scalar("mul", rest, share)
        excess = b.scalar("mul", rest, rest)
        variance = b.scalar("sub", b.scalar("mul", squares, share), excess)
        variance = b.scalar("max", variance, b.const(0, name))
    else:
        variance = b.scalar("mul", _read(cx, row, at, inner, square=True), share)
    spread = b.scalar("sqrt", b.scalar("add", variance, b.const(cx.attrs.epsilon, name)))
    factor = b.scalar("reciprocal", spread)

    def last(i: tuple[Index, ...]) -> None:
        value = row.load(b.flatten(i, inner))
        if centred:
            value = b.scalar("sub", b.scalar("sub", value, mean), rest)
        value = _scaled(cx, b.scalar("mul", value, factor), i, inner)
        cx.store(b.cast(value, cx.result_type.dtype.name), [*at, *i])

    for_each(b, inner, last)


def _read(
    cx: KernelCx, row: Scratch, at: Sequence[Index], inner: Sequence[Dim], square: bool
) -> Value:
    """Keeps a row in scratch; gives the sum of its elements or of their squares."""
    b, name = cx.b, cx.result_type.dtype.compute.name

    def step(i: tuple[Index, ...], total: Value) -> Sequence[Value]:
        value = b.cast(cx.operand(0, [*at, *i]), name)
        row.store(value, b.flatten(i, inner))
        return [b.scalar("add", total, b.scalar("mul", value, value) if square else value)]

    return loops(b, inner, [b.const(0, name)], step)[0]


def _moments(cx: KernelCx, row: Scratch, inner: Sequence[Dim], mean: Value) -> tuple[Value, ...]:
    """The sums of the distances from the mean and of their squares."""
    b, name = cx.b, cx.result_type.dtype.compute.name

    def step(i: tuple[Index, ...], rest: Value, squares: Value) -> Sequence[Value]:
        distance = b.scalar("sub", row.load(b.flatten(i, inner)), mean)
        square = b.scalar("mul", distance, distance)
        return [b.scalar("add", rest, distance), b.scalar("add", squares, square)]

    return loops(b, inner, [b.const(0, name)] * 2, step)


def _scaled(cx: KernelCx, value: Value, i: Sequence[Index], inner: Sequence[Dim]) -> Value:
    b, name = cx.b, cx.result_type.dtype.compute.name
    for k, fn in zip(range(1, len(cx.operand_types)), ("mul", "add"), strict=False):
        index = broadcast_index(i, cx.operand_types[k].dims, inner)
        value = b.scalar(fn, value, b.cast(cx.operand(k, index), name))
    return value


def _record(name: str, centred: bool) -> Primitive:
    infer: Callable[..., Sequence[TensorType]] = partial(_infer, centred)
    return Primitive(
        name=name,
        infer=infer,
        evaluate=partial(_evaluate, centred),
        attrs={"axis": Attr("int"), "epsilon": Attr("float", 1e-5)},
        kernel=partial(_kernel, centred),
        tags=frozenset({"anchor", "norm"}),
        tolerance=1e-5,
        computes=True,
    ).register()


LAYER_NORM = _record("layer_norm", True)  # operands x, perhaps a scale, perhaps a bias
RMS_NORM = _record("rms_norm", False)  # operands x, perhaps a scale
