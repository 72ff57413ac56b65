"""Reductions over axes, running sums, and positions of extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuvil.ops.compose.helpers import axes_in, axis_in, index_list, narrow, wide
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_rows

Body = Callable[[Cx, Value, tuple[int, ...], bool], Value]


def _plain(kind: str) -> Body:
    def body(cx: Cx, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
        return cx.b.reduce(x, kind=kind, axes=axes, keepdims=keepdims)

    return body


def _extreme(kind: str) -> Body:
    logical = {"max": "any", "min": "all"}[kind]

    def body(cx: Cx, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
        chosen = logical if cx.type(x).dtype.name == "bool" else kind
        return cx.b.reduce(x, kind=chosen, axes=axes, keepdims=keepdims)

    return body


def _sum_of(before: Sequence[str], after: str | None = None) -> Body:
    """The sum of a function of the elements, and a function of that; in f32 at least."""

    def body(cx: Cx, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
        value = wide(cx, x)
        for name in before:
            value = cx.b.mul(value, value) if name == "square" else cx.b.emit(name, [value])
        value = cx.b.reduce(value, kind="sum", axes=axes, keepdims=keepdims)
        return narrow(cx, _float_function(cx, after, value) if after else value, x)

    return body


def _float_function(cx: Cx, name: str, x: Value) -> Value:
    """A function of floats; integers go through f64."""
    if cx.type(x).dtype.is_float:
        return cx.b.emit(name, [x])
    return narrow(cx, cx.b.emit(name, [cx.b.cast(x, to="f64")]), x)


def _log_sum_exp(cx: Cx, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """Shifted by the maximum, so that nothing overflows; infinities stay what they are."""
    value = wide(cx, x) if cx.type(x).dtype.is_float else cx.b.cast(x, to="f64")
    best = cx.b.reduce(value, kind="max", axes=axes, keepdims=True)
    finite = cx.b.lt(cx.b.abs(best), cx.b.scalar(float("inf"), best))
    shift = cx.b.select(finite, best, cx.b.scalar(0, best))
    total = cx.b.reduce(cx.b.exp(cx.b.sub(value, shift)), kind="sum", axes=axes, keepdims=keepdims)
    if not keepdims:
        kept = [d for k, d in enumerate(cx.dims(shift)) if k not in axes]
        shift = cx.b.reshape(shift, dims=kept)
    return narrow(cx, cx.b.add(cx.b.log(total), shift), x)


_REDUCTIONS: dict[str, Body] = {
    "ReduceSum": _plain("sum"),
    "ReduceMean": _plain("mean"),
    "ReduceProd": _plain("prod"),
    "ReduceMax": _extreme("max"),
    "ReduceMin": _extreme("min"),
    "ReduceL1": _sum_of(["abs"]),
    "ReduceL2": _sum_of(["square"], "sqrt"),
    "ReduceLogSum": _sum_of([], "log"),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": _sum_of(["square"]),
}


def by_attribute(body: Body) -> Callable[..., Value]:
    """Axes as an attribute; all of them where it is absent."""

    def compose(
        cx: Cx, x: Value, *, axes: tuple[int, ...] | None = None, keepdims: int = 1
    ) -> Value:
        rank = cx.type(x).rank
        chosen = tuple(range(rank)) if axes is None else axes_in(cx, axes, rank)
        return body(cx, x, chosen, bool(keepdims))

    return compose


def by_input(body: Body) -> Callable[..., Value]:
    """Axes as an input; where empty or absent all of them, or none if `noop_with_empty_axes`.

    Without axes the function of the elements (abs, square, ...) is still applied.
    """

    def compose(
        cx: Cx,
        x: Value,
        axes: Value = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:
        rank = cx.type(x).rank
        chosen = () if axes is None else _given_axes(cx, axes, rank)
        if not chosen and not noop_with_empty_axes:
            chosen = tuple(range(rank))
        return body(cx, x, chosen, bool(keepdims))

    return compose


def _given_axes(cx: Cx, axes: Value, rank: int) -> tuple[int, ...]:
    return () if cx.dims(axes) == (0,) else axes_in(cx, index_list(cx, axes, "axes"), rank)


onnx_rows(by_attribute, _REDUCTIONS)
onnx_rows(by_input, {"ReduceSum": _REDUCTIONS["ReduceSum"]}, since=13)
onnx_rows(
    by_input, {name: body for name, body in _REDUCTIONS.items() if name != "ReduceSum"}, since=18
)


def arg_extreme(kind: str) -> Callable[..., Value]:
    """The position of the first (or last) extreme element of an axis."""

    def compose(
        cx: Cx, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Value:
        at = axis_in(cx, axis, cx.type(x).rank)
        return cx.b.arg_reduce(
            x, kind=kind, axis=at, keepdims=bool(keepdims), last=bool(select_last_index)
        )

    return compose


onnx_rows(arg_extreme, {"ArgMax": "max", "ArgMin": "min"})


def running(kind: str) -> Callable[..., Value]:
    """A running sum or product along an axis."""

    def compose(cx: Cx, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
        rank = cx.type(x).rank
        at = axis_in(cx, index_list(cx, axis, "axis")[0], rank)
        return cx.b.cumulative(
            x, kind=kind, axis=at, exclusive=bool(exclusive), reverse=bool(reverse)
        )

    return compose


onnx_rows(running, {"CumSum": "sum"}, since=11)
onnx_rows(running, {"CumProd": "prod"}, since=26)
