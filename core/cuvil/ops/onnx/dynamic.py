"""Shapes and bounds that a run finds: what a compiler cannot know becomes symbols."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from cuvil.ir.dims import Dim, SymDim, product
from cuvil.ir.names import Operation
from cuvil.ops.compose.helpers import fitted
from cuvil.ops.onnx.context import Cx, Value

__all__ = [
    "as_i64", "as_value", "capped_step", "count_of", "elements", "extents", "shape_with_rest",
    "slice_bounds", "where_true",
]  # fmt: skip


def as_i64(cx: Cx, x: Value) -> Value:
    return x if cx.type(x).dtype.name == "i64" else cx.b.cast(x, to="i64")


def as_value(cx: Cx, dim: Dim) -> Value:
    """An extent as an i64 scalar."""
    return cx.b.dims(dims=(dim,), shape=(), dtype="i64")


def elements(cx: Cx, vector: Value, what: str, count: int | None = None) -> list[Value]:
    """The elements of an integer vector (or the scalar itself) as i64 scalars.

    count: how many there have to be, where the operator says that.
    """
    if count is not None and cx.type(vector).rank == 1:
        vector = fitted(cx, vector, (count,))
    kind = cx.type(vector)
    if not kind.dtype.is_integer:
        cx.bad(f"{what} is {kind.dtype.name}, not an integer tensor")
    if not isinstance(kind.size, int):
        cx.fail(f"{what} has the symbolic length {kind.size}; give it a fixed one")
    owner = vector.owner
    if isinstance(owner, Operation) and owner.name == "cuvil.concat":  # some may be known
        return [v for part in owner.operands for v in elements(cx, part, what)]
    flat = cx.b.reshape(as_i64(cx, vector), dims=(kind.size,))
    return [
        cx.b.reshape(cx.b.slice(flat, starts=(k,), steps=(1,), dims=(1,)), dims=())
        for k in range(kind.size)
    ]


def extents(
    cx: Cx, value: Value, what: str, most: Sequence[Dim | None] = (), count: int | None = None
) -> list[Dim]:
    """The elements of an integer tensor as extents: known, or bound when a run finds them.

    most: upper bounds of the latter, where there are any. count: as for `elements`.
    """
    if cx.known(value) is not None:
        return cx.known_ints(value, what)
    found = elements(cx, value, what, count)
    limits = [*most, *[None] * (len(found) - len(most))]
    name = _symbol_name(what)
    return [cx.bind(v, name, most=limit) for v, limit in zip(found, limits, strict=True)]


def _symbol_name(what: str) -> str:
    return what.removeprefix("the ").replace(" ", "_")


def shape_with_rest(cx: Cx, have: Sequence[Dim], wanted: Sequence[Value], copy: bool) -> list[Dim]:
    """The extents that a Reshape to run-time numbers asks for.

    -1 stands for what is left, and 0 (if copy) for the extent of `have` there. Where one number
    alone is unknown, it can only be what is left.
    """
    known = [_known_number(cx, v) for v in wanted]
    open_ = [k for k, n in enumerate(known) if n is None]
    if len(open_) == 1 and all(n is None or _positive(n) for n in known):
        rest = product([n for n in known if n is not None])
        return [product(have) // rest if n is None else n for n in known]
    b, one, zero = cx.b, cx.b.scalar(1, "i64"), cx.b.scalar(0, "i64")
    chosen: list[Value] = list(wanted)
    if copy:
        for k, value in enumerate(wanted[: len(have)]):
            chosen[k] = b.select(b.eq(value, zero), as_value(cx, have[k]), value)
    filled = [b.select(b.eq(v, b.scalar(-1, "i64")), one, v) for v in chosen]
    total = reduce(b.mul, filled, one)
    rest = b.div(as_value(cx, product(have)), b.max(total, one))
    return [cx.bind(b.select(b.eq(v, b.scalar(-1, "i64")), rest, v), "shape") for v in chosen]


def _known_number(cx: Cx, value: Value) -> Dim | None:
    known = cx.known(value)
    return None if known is None else cx.known_ints(value, "an extent")[0]


def _positive(dim: Dim) -> bool:
    return isinstance(dim, SymDim) or dim > 0


_FAR_STEP = 1 << 40  # no axis is so long that a greater step says more


def capped_step(step: int) -> int:
    """A step that selects the same elements and overflows no sum."""
    return min(max(step, -_FAR_STEP), _FAR_STEP)


def slice_bounds(cx: Cx, dim: Dim, start: Value, end: Value, step: Value) -> tuple[Value, Value]:
    """(first position, count) of numpy's slice of an axis, for numbers that only a run knows.

    A step of 0 makes the count -1, which no run accepts.
    """
    b, extent = cx.b, as_value(cx, dim)
    zero, one = b.scalar(0, "i64"), b.scalar(1, "i64")
    step = b.min(b.max(step, b.scalar(-_FAR_STEP, "i64")), b.scalar(_FAR_STEP, "i64"))
    down = b.lt(step, zero)
    low = b.select(down, b.scalar(-1, "i64"), zero)
    high = b.select(down, b.sub(extent, one), extent)

    def clamped(bound: Value) -> Value:
        bound = b.select(b.lt(bound, zero), b.add(bound, extent), bound)
        return b.min(b.max(bound, low), high)

    first, last = clamped(start), clamped(end)
    size = b.abs(step)
    span = b.select(down, b.sub(first, last), b.sub(last, first))
    count = b.div(b.add(b.max(span, zero), b.sub(size, one)), b.max(size, one))
    return b.max(first, zero), b.select(b.eq(step, zero), b.scalar(-1, "i64"), count)


def count_of(cx: Cx, condition: Value, hint: str) -> Dim:
    """How many elements of a vector of bools are true."""
    ones = cx.b.cast(condition, to="i64")
    total = cx.b.reduce(ones, kind="sum", axes=(0,), keepdims=False)
    return cx.bind(total, hint, most=cx.dims(condition)[0])


def where_true(cx: Cx, condition: Value, hint: str) -> Value:
    """The positions of the true elements of a vector of bools, as many as the run finds."""
    return cx.b.positions(condition, count=count_of(cx, condition, hint))
