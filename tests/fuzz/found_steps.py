"""Steps whose extents the run finds: elements that a condition selects."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ir.names import Value
from cuvil.ir.types import TensorType
from tests.fuzz.program import Misfit, Program


def compressed(p: Program) -> Value:
    """Slices of a value where numbers that compiled code gives exactly are positive."""
    if p.depth:
        raise Misfit  # what a region finds is not known outside of it
    x = p.pick_exact(_has_signs)
    axis = p.number(0, len(p.dims(x)) - 1)
    extent = p.dims(x)[axis]
    condition = _positive(p, x, axis)
    place = p.emit("positions", condition, count=_bound_count(p, condition), exact=True)
    if p.chance(0.6):
        return p.emit("gather", x, place, axis=axis, exact=True)
    other = p.pick(lambda t: extent in t.dims)
    return p.emit("gather", other, place, axis=p.dims(other).index(extent), exact=other in p.exact)


def _has_signs(t: TensorType) -> bool:
    return t.rank >= 1 and t.dtype.is_signed


def _positive(p: Program, x: Value, axis: int) -> Value:
    """Whether the greatest number at each position of an axis is above 0."""
    others = [k for k in range(len(p.dims(x))) if k != axis]
    if p.is_empty(x):
        raise Misfit
    top = x
    if others:
        top = p.emit("reduce", x, kind="max", axes=others, keepdims=False, exact=True)
    return p.emit("gt", top, p.scalar(0, p.kind(x)), exact=True)


def _bound_count(p: Program, condition: Value) -> Dim:
    """How many elements are true, with and without an upper bound."""
    ones = p.emit("cast", condition, to="i64", exact=True)
    count = p.emit("reduce", ones, kind="sum", axes=(0,), keepdims=False, exact=True)
    return p.bind(count, most=p.dims(condition)[0] if p.chance(0.6) else None)
