"""Sums, extremes and other numbers of whole axes; running ones; positions of extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import cast
from cuvil.ops.aten.registry import aten, aten_rows
from cuvil.ops.compose.helpers import axis_in, narrow, wide

Axes = Sequence[int] | int | None


def axes_of(cx: Cx, x: Value, dim: Axes) -> tuple[int, ...]:
    """Axes counted from the front; all of them for None and for an empty list."""
    rank = cx.type(x).rank
    listed = [dim] if isinstance(dim, int) else list(dim or ())
    if not rank:
        return ()
    return tuple(axis_in(cx, d, rank, "dim") for d in listed) or tuple(range(rank))


def reduced(cx: Cx, x: Value, kind: str, dim: Axes, keepdim: bool = False) -> Value:
    """A reduction in the type of x; of nothing at all, of a scalar, x itself."""
    if not cx.type(x).rank:
        return x
    return cx.b.reduce(x, kind=kind, axes=axes_of(cx, x, dim), keepdims=keepdim)


def arithmetic(kind: str) -> Callable[..., Value]:
    """A sum, product or mean, in the type of the result."""

    def compose(
        cx: Cx, x: Value, dim: Axes = None, keepdim: bool = False, *, dtype: str | None = None
    ) -> Value:
        name = cx.result.dtype.name
        value = wide(cx, cast(cx, x, name))
        return cast(cx, reduced(cx, value, kind, dim, keepdim), name)

    return compose


aten_rows(
    arithmetic,
    {"sum": "sum", "sum.dim_IntList": "sum", "mean": "mean", "mean.dim": "mean",
     "prod": "prod", "prod.dim_int": "prod"},
)  # fmt: skip


def primitive(kind: str) -> Callable[..., Value]:
    """A reduction of torch's prims: the axes are listed."""

    def compose(cx: Cx, x: Value, dims: Sequence[int] | None, output_dtype: Value = None) -> Value:
        name = cx.result.dtype.name
        logical = {"amax": "any", "amin": "all"}
        chosen = logical.get(kind, kind) if name == "bool" else kind.removeprefix("a")
        if dims is not None and not dims:
            return cast(cx, x, name)
        return reduced(cx, cast(cx, x, name), chosen, dims)

    return compose


aten_rows(
    primitive,
    {f"prims.{k}.default": k for k in ("sum", "prod", "amax", "amin")},
)


def truth(kind: str) -> Callable[..., Value]:
    """Whether any or all elements are not 0."""

    def compose(cx: Cx, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
        if isinstance(dim, list) and not dim:
            value = cast(cx, x, "bool")  # no axis, not all of them
        else:
            value = reduced(cx, cast(cx, x, "bool"), kind, dim, keepdim)
        return cast(cx, value, cx.result.dtype.name)

    return compose


aten_rows(
    truth,
    {"any": "any", "any.dim": "any", "any.dims": "any",
     "all": "all", "all.dim": "all", "all.dims": "all"},
)  # fmt: skip


def extreme(kind: str) -> Callable[..., Value]:
    """The greatest or least element."""
    logical = {"max": "any", "min": "all"}[kind]

    def compose(cx: Cx, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
        chosen = logical if cx.type(x).dtype.name == "bool" else kind
        return reduced(cx, x, chosen, dim, keepdim)

    return compose


aten_rows(extreme, {"amax": "max", "max": "max", "amin": "min", "min": "min"})


def _position(cx: Cx, x: Value, kind: str, dim: int, keepdim: bool) -> Value:
    if not cx.type(x).rank:
        return cx.b.scalar(0, "i64")
    value = cast(cx, x, "u8") if cx.type(x).dtype.name == "bool" else x
    at = axis_in(cx, dim, cx.type(x).rank, "dim")
    return cx.b.arg_reduce(value, kind=kind, axis=at, keepdims=keepdim)


def extreme_with_position(kind: str) -> Callable[..., tuple[Value, Value]]:
    """The greatest or least elements of an axis, and where they are."""

    def compose(cx: Cx, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        value = extreme(kind)(cx, x, dim, keepdim)
        return value, _position(cx, x, kind, dim, keepdim)

    return compose


aten_rows(extreme_with_position, {"max.dim": "max", "min.dim": "min"})


def position(kind: str) -> Callable[..., Value]:
    """Where the first greatest or least element is; without an axis, in the flattened tensor."""

    def compose(cx: Cx, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        if dim is None:
            flat = cx.b.reshape(x, dims=(cx.type(x).size,))
            return cx.b.reshape(_position(cx, flat, kind, 0, False), dims=cx.result.dims)
        return _position(cx, x, kind, dim, keepdim)

    return compose


aten_rows(position, {"argmax": "max", "argmin": "min"})


@aten("aminmax")
def aminmax(cx: Cx, x: Value, *, dim: int | None = None, keepdim: bool = False) -> Value:
    """The least and the greatest element."""
    low, high = (extreme(k)(cx, x, dim, keepdim) for k in ("min", "max"))
    dims = cx.result.dims
    return cx.b.reshape(low, dims=dims), cx.b.reshape(high, dims=dims)


def _variance(cx: Cx, x: Value, dim: Axes, correction: Value, keepdim: bool) -> tuple[Value, Value]:
    """(variance, mean) in f32 at least."""
    b, value = cx.b, wide(cx, x)
    axes = axes_of(cx, x, dim)
    if not cx.type(x).rank:
        value, axes = b.reshape(value, dims=(1,)), (0,)
    mean = b.reduce(value, kind="mean", axes=axes, keepdims=True)
    centred = b.sub(value, mean)
    total = b.reduce(b.mul(centred, centred), kind="sum", axes=axes, keepdims=keepdim)
    count = _count(cx, value, axes)
    less = b.sub(count, b.scalar(1.0 if correction is None else float(correction), count))
    less = b.max(less, b.scalar(0, less))
    plain = b.reduce(value, kind="mean", axes=axes, keepdims=keepdim)
    return b.div(total, less), plain


def _count(cx: Cx, x: Value, axes: Sequence[int]) -> Value:
    """The number of elements of these axes, in the type of x."""
    dims = cx.dims(x)
    known = cx.b.dims(dims=(1,), shape=(), dtype="i64")
    for axis in axes:
        known = cx.b.mul(known, cx.b.dims(dims=(dims[axis],), shape=(), dtype="i64"))
    return cx.b.cast(known, to=cx.type(x).dtype.name)


@aten("var.correction")
def var(
    cx: Cx, x: Value, dim: Axes = None, *, correction: Value = None, keepdim: bool = False
) -> Value:
    """The mean square distance from the mean, over (count - correction)."""
    found = narrow(cx, _variance(cx, x, dim, correction, keepdim)[0], x)
    return cx.b.reshape(found, dims=cx.result.dims)


@aten("std.correction")
def std(
    cx: Cx, x: Value, dim: Axes = None, *, correction: Value = None, keepdim: bool = False
) -> Value:
    """The square root of the variance."""
    found = cx.b.sqrt(_variance(cx, x, dim, correction, keepdim)[0])
    return cx.b.reshape(narrow(cx, found, x), dims=cx.result.dims)


@aten("var_mean.correction")
def var_mean(
    cx: Cx, x: Value, dim: Axes = None, *, correction: Value = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """The variance and the mean."""
    found = [narrow(cx, v, x) for v in _variance(cx, x, dim, correction, keepdim)]
    variance, mean = (cx.b.reshape(v, dims=cx.result.dims) for v in found)
    return variance, mean


def running(kind: str) -> Callable[..., Value]:
    """A running sum or product."""

    def compose(cx: Cx, x: Value, dim: int, *, dtype: str | None = None) -> Value:
        name = cx.result.dtype.name
        value = cast(cx, x, name)
        if not cx.type(x).rank:
            return value
        at = axis_in(cx, dim, cx.type(x).rank, "dim")
        return cast(cx, cx.b.cumulative(wide(cx, value), kind=kind, axis=at), name)

    return compose


aten_rows(running, {"cumsum": "sum", "cumprod": "prod"})


@aten("histc")
def histc(cx: Cx, x: Value, bins: int = 100, min: Value = 0, max: Value = 0) -> Value:
    """How many elements lie in each of equal parts of [min, max]; others count nowhere."""
    if min == max:
        cx.fail("histc without limits: the elements themselves decide")
    b, wide_, kind = cx.b, "f64", cx.result.dtype.name
    flat = b.cast(b.reshape(x, dims=(cx.type(x).size, 1)), to=wide_)
    low, high = b.scalar(float(min), wide_), b.scalar(float(max), wide_)
    scaled = b.mul(b.div(b.sub(flat, low), b.sub(high, low)), b.scalar(float(bins), wide_))
    place = b.min(b.floor(scaled), b.scalar(float(bins - 1), wide_))
    inside = b.and_(b.ge(flat, low), b.le(flat, high))
    here = b.and_(inside, b.eq(place, b.iota(dims=(1, bins), axis=1, dtype=wide_)))
    return b.reduce(b.cast(here, to=kind), kind="sum", axes=(0,))


def running_extreme(kind: str) -> Callable[..., tuple[Value, Value]]:
    """The extreme of all elements up to each, and the last place that has it."""
    test = {"max": "ge", "min": "le"}[kind]

    def compose(cx: Cx, x: Value, dim: int) -> tuple[Value, Value]:
        b, name = cx.b, cx.type(x).dtype.name
        if not cx.type(x).rank:
            return x, b.scalar(0, "i64")
        axis = axis_in(cx, dim, cx.type(x).rank, "dim")
        value = cast(cx, x, "u8") if name == "bool" else x
        best = b.cumulative(value, kind=kind, axis=axis)
        here = b.emit(test, [value, best])
        if cx.type(x).dtype.is_float:
            here = b.or_(here, b.isnan(x))
        steps = [d if k == axis else 1 for k, d in enumerate(cx.dims(x))]
        place = b.select(here, b.iota(dims=steps, axis=axis), b.scalar(0, "i64"))
        return cast(cx, best, name), b.cumulative(place, kind="max", axis=axis)

    return compose


aten_rows(running_extreme, {"cummax": "max", "cummin": "min"})
