"""Shapes and bounds that a run finds: what a compiler cannot know becomes symbols."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim
from cuvil.ops.onnx.context import Cx, Value

__all__ = ["as_i64", "as_value", "count_of", "elements", "extents", "signed_extents", "where_true"]


def as_i64(cx: Cx, x: Value) -> Value:
    return x if cx.type(x).dtype.name == "i64" else cx.b.cast(x, to="i64")


def as_value(cx: Cx, dim: Dim) -> Value:
    """An extent as an i64 scalar."""
    return cx.b.dims(dims=(dim,), shape=(), dtype="i64")


def elements(cx: Cx, vector: Value, what: str) -> list[Value]:
    """The elements of an integer vector (or the scalar itself) as i64 scalars."""
    kind = cx.type(vector)
    if not kind.dtype.is_integer:
        cx.bad(f"{what} is {kind.dtype.name}, not an integer tensor")
    if not isinstance(kind.size, int):
        cx.fail(f"{what} has the symbolic length {kind.size}; give it a fixed one")
    flat = cx.b.reshape(as_i64(cx, vector), dims=(kind.size,))
    return [
        cx.b.reshape(cx.b.slice(flat, starts=(k,), steps=(1,), dims=(1,)), dims=())
        for k in range(kind.size)
    ]


def extents(cx: Cx, value: Value, what: str, most: Sequence[Dim | None] = ()) -> list[Dim]:
    """The elements of an integer tensor as extents: known, or bound when a run finds them.

    most: upper bounds of the latter, where there are any.
    """
    if cx.known(value) is not None:
        return cx.known_ints(value, what)
    found = elements(cx, value, what)
    limits = [*most, *[None] * (len(found) - len(most))]
    name = what.removeprefix("the ").replace(" ", "_")
    return [cx.bind(v, name, most=limit) for v, limit in zip(found, limits, strict=True)]


def signed_extents(cx: Cx, value: Value, what: str) -> list[Dim]:
    """As `extents`, for numbers that may be negative: the difference of two symbols."""
    if cx.known(value) is not None:
        return cx.known_ints(value, what)
    zero = cx.b.scalar(0, "i64")
    result: list[Dim] = []
    for v in elements(cx, value, what):
        above = cx.bind(cx.b.max(v, zero), what)
        result.append(above - cx.bind(cx.b.max(cx.b.neg(v), zero), f"{what}_below"))
    return result


def count_of(cx: Cx, condition: Value, hint: str) -> Dim:
    """How many elements of a vector of bools are true."""
    ones = cx.b.cast(condition, to="i64")
    total = cx.b.reduce(ones, kind="sum", axes=(0,), keepdims=False)
    return cx.bind(total, hint, most=cx.dims(condition)[0])


def where_true(cx: Cx, condition: Value, hint: str) -> Value:
    """The positions of the true elements of a vector of bools, as many as the run finds."""
    return cx.b.positions(condition, count=count_of(cx, condition, hint))
