"""What several operator families share: axes, compile-time numbers, wide arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim
from cuvil.ops.compose.context import Cx, Value

__all__ = [
    "axes_in", "axis_in", "fitted", "index_list", "narrow", "static", "unsqueezed", "wide",
]  # fmt: skip


def axis_in(cx: Cx, axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the front; ModelError where the rank has no such axis."""
    if not -rank <= axis < rank:
        cx.bad(f"{what} {axis} is not an axis of rank {rank}")
    return axis % rank


def axes_in(cx: Cx, axes: Sequence[Dim], rank: int, what: str = "axes") -> tuple[int, ...]:
    """Axes counted from the front; ModelError for one that is not there, or is there twice."""
    found = tuple(axis_in(cx, a, rank, what) for a in static(cx, axes, what))
    if len(set(found)) != len(found):
        cx.bad(f"{what} {list(found)} name an axis twice")
    return found


def static(cx: Cx, values: Sequence[Dim], what: str) -> list[int]:
    """Values that must be plain numbers; UnsupportedError where one is a symbolic dimension."""
    for value in values:
        if not isinstance(value, int):
            cx.fail(f"{what} contains the symbolic dimension {value}; give it a fixed extent")
    return [v for v in values if isinstance(v, int)]


def fitted(cx: Cx, x: Value, dims: Sequence[Dim]) -> Value:
    """`x`, whose extents have to be these: where the compiler cannot tell, a run checks it."""
    have = cx.dims(x)
    if have == tuple(dims):
        return x
    for a, b in zip(have, dims, strict=True):
        if isinstance(a, int) and isinstance(b, int) and a != b:
            cx.bad(f"an operand has the extents {list(have)}, not {list(dims)}")
        cx.equal(a, b)
        cx.require(a, b)
    return cx.b.reshape(x, dims=dims)


def index_list(cx: Cx, value: Value, what: str) -> list[int]:
    """The elements of a compile-time integer tensor as numbers."""
    return static(cx, cx.known_ints(value, what), what)


def wide(cx: Cx, x: Value) -> Value:
    """f16 and bf16 as f32, in which sums of squares and the like are computed; others as is."""
    kind = cx.type(x).dtype
    return x if kind.compute == kind else cx.b.cast(x, to=kind.compute.name)


def narrow(cx: Cx, x: Value, like: Value) -> Value:
    """`x` in the element type of `like`."""
    name = cx.type(like).dtype.name
    return x if cx.type(x).dtype.name == name else cx.b.cast(x, to=name)


def unsqueezed(cx: Cx, x: Value, axes: Sequence[int]) -> Value:
    """`x` with extents of 1 put in at these axes of the result."""
    dims: list[Dim] = list(cx.dims(x))
    for axis in sorted(axes):
        dims.insert(axis, 1)
    return cx.b.reshape(x, dims=dims) if axes else x
