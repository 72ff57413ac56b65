"""What extents must satisfy so that no kernel leaves its buffers; a run checks what is not proved.

A type may say `[N]` where an operand is `[M]`: the importer took them as equal, and a caller's
shapes decide. The conditions of an op are on its operands, attributes and results alone, so that
together they cover whatever a graph became by rewriting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, SymDim, bounds, dim_max, dim_min, known_equal, known_ge, symbol
from cuvil.ir.graph import YieldOp
from cuvil.ir.names import Operation
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.ir.types import TensorType
from cuvil.ops.attention import extents_of, letters_of
from cuvil.ops.contract import parse
from cuvil.ops.conv import channel_axis, spatial_axes
from cuvil.ops.resize import moved

Ranges = Mapping[str, tuple[int, int | None]]
Types = Sequence[TensorType]


class Condition(NamedTuple):
    """left == right (equal), or left >= right."""

    left: Dim
    right: Dim
    equal: bool

    def __str__(self) -> str:
        return f"{self.left} {'==' if self.equal else '>='} {self.right}"

    def holds(self, ranges: Ranges) -> bool:
        """Whether it is proved for all extents in these ranges."""
        if self.equal:
            return known_equal(self.left, self.right)
        if isinstance(self.left, SymDim) and isinstance(self.right, int):
            low = bounds(self.left, ranges)[0]
            if low is not None and low >= self.right:
                return True
        return known_ge(self.left, self.right, ranges)


Conditions = Iterator[Condition]
Rule = Callable[[Types, Types, Attrs], Conditions]


def conditions(op: Operation, ranges: Ranges) -> Conditions:
    """The conditions of one op of a graph that are not proved."""
    if isinstance(op, YieldOp):
        found: Conditions = _yielded(op)
    elif hasattr(op, "record"):
        found = _of_record(op)
    else:
        return
    for condition in found:
        literal = isinstance(condition.left, int) and isinstance(condition.right, int)
        if not literal and not condition.holds(ranges):  # types settle what is literal
            yield condition


def _of_record(op: Operation) -> Conditions:
    given = [tensor_type(v) for v in op.operands]
    results = [tensor_type(v) for v in op.results]
    for kind in results:
        yield from (Condition(d, 0, False) for d in kind.dims if isinstance(d, SymDim))
    record = of(op)
    rule = _broadcast if "pointwise" in record.tags else _RULES.get(record.name)
    if rule is not None:
        free = set(_found_by(op)) if record.regions else ()
        yield from (c for c in rule(given, results, attrs_of(op)) if c.right not in free)


def _yielded(op: YieldOp) -> Conditions:
    """What a region yields has the extents that its op's results (of a loop: per step) have."""
    parent = op.parent_op()
    assert parent is not None
    results = [tensor_type(r) for r in parent.results]
    free = set(_found_by(parent))
    stacked = len(parent.operands) if parent.name == "cuvil.loop" else len(results)
    for i, (value, kind) in enumerate(zip(op.operands, results, strict=True)):
        dims = kind.dims[1:] if i >= stacked else kind.dims
        for mine, theirs in zip(tensor_type(value).dims, dims, strict=True):
            if theirs not in free:
                yield Condition(mine, theirs, True)


def _found_by(op: Operation) -> Iterator[Dim]:
    """Symbols that are bound to results of control flow: extents of its other results."""
    for result in op.results:
        for use in result.uses:
            if use.operation.name == "cuvil.bind":
                yield symbol(attrs_of(use.operation).symbol)


def _same(a: Sequence[Dim], b: Sequence[Dim]) -> Conditions:
    for x, y in zip(a, b, strict=True):
        yield Condition(x, y, True)


def _aligned(dims: Sequence[Dim], target: Sequence[Dim]) -> Conditions:
    """Equal, from the right, but for what is 1 by its type and so repeats."""
    for d, t in zip(reversed(dims), reversed(target), strict=False):
        if d != 1:
            yield Condition(d, t, True)


def _all_aligned(given: Types, target: Sequence[Dim]) -> Conditions:
    return chain.from_iterable(_aligned(kind.dims, target) for kind in given)


def _broadcast(given: Types, results: Types, _: Attrs) -> Conditions:
    return _all_aligned(given, results[0].dims)


def _contract(given: Types, results: Types, a: Attrs) -> Conditions:
    spec = parse(a.spec)
    found = dict(zip(spec.out, results[0].dims, strict=True))
    for letters, kind in zip(spec[:2], given, strict=True):
        for letter, dim in zip(letters, kind.dims, strict=True):
            yield Condition(dim, found.setdefault(letter, dim), True)


def _concat(given: Types, results: Types, a: Attrs) -> Conditions:
    for kind in given:
        for axis, (d, r) in enumerate(zip(kind.dims, results[0].dims, strict=True)):
            if axis != a.axis:
                yield Condition(d, r, True)


def _reshape(given: Types, results: Types, _: Attrs) -> Conditions:
    yield Condition(given[0].size, results[0].size, True)


def _slice(given: Types, _: Types, a: Attrs) -> Conditions:
    """First and last element lie inside the axis, unless there are none."""
    for start, step, n, extent in zip(a.starts, a.steps, a.dims, given[0].dims, strict=True):
        if all(isinstance(d, int) for d in (start, n, extent)) or n == 0:
            continue
        last = start + (n - 1) * step
        low, high = (start, last) if step > 0 else (last, start)
        yield Condition(_unless_empty(low, n), 0, False)
        yield Condition(_unless_empty(extent - 1 - high, n), 0, False)


def _unless_empty(value: Dim, count: Dim) -> Dim:
    """Negative only if `value` is and count > 0."""
    if isinstance(count, int) or (bounds(count)[0] or 0) > 0:
        return value
    low = bounds(value)[0]
    return value if low is not None and low >= 0 else dim_max(value, -count)


def _pad(given: Types, _: Types, a: Attrs) -> Conditions:
    for d, low, high in zip(given[0].dims, a.low, a.high, strict=True):
        if a.mode != "constant" and not (known_ge(0, low) and known_ge(0, high)):
            yield Condition(d + dim_min(low, 0) + dim_min(high, 0), 1, False)


def _conv(given: Types, _: Types, a: Attrs) -> Conditions:
    x, w = given[0].dims, given[1].dims
    yield Condition(x[channel_axis(a.layout, len(x))], w[1] * a.groups, True)
    yield from _not_empty(x, spatial_axes(a.layout, len(x)))
    yield from (c for kind in given[2:] for c in _same(kind.dims, w[:1]))


def _conv_transpose(given: Types, _: Types, a: Attrs) -> Conditions:
    x, w = given[0].dims, given[1].dims
    yield Condition(x[channel_axis(a.layout, len(x))], w[0], True)
    yield from _not_empty(x, spatial_axes(a.layout, len(x)))
    yield from (c for kind in given[2:] for c in _same(kind.dims, (w[1] * a.groups,)))


def _pool(given: Types, _: Types, a: Attrs) -> Conditions:
    return _not_empty(given[0].dims, spatial_axes(a.layout, given[0].rank))


def _resize(given: Types, _: Types, a: Attrs) -> Conditions:
    return _not_empty(given[0].dims, [x.axis for x in moved(a, given[0].dims)])


def _arg_reduce(given: Types, _: Types, a: Attrs) -> Conditions:
    return _not_empty(given[0].dims, [a.axis])


def _not_empty(dims: Sequence[Dim], axes: Sequence[int]) -> Conditions:
    return (Condition(dims[axis], 1, False) for axis in axes)


def _norm(given: Types, results: Types, a: Attrs) -> Conditions:
    return _all_aligned(given[1:], results[0].dims)


def _gather_elements(given: Types, _: Types, a: Attrs) -> Conditions:
    for axis, (d, i) in enumerate(zip(given[0].dims, given[1].dims, strict=True)):
        if axis != a.axis:
            yield Condition(d, i, False)


def _gather_nd(given: Types, _: Types, a: Attrs) -> Conditions:
    return _same(given[0].dims[: a.batch_dims], given[1].dims[: a.batch_dims])


def _scatter_elements(given: Types, results: Types, a: Attrs) -> Conditions:
    yield from _gather_elements(given, results, a)
    yield from _same(given[1].dims, given[2].dims)


def _scatter_nd(given: Types, _: Types, a: Attrs) -> Conditions:
    data, indices, updates = (kind.dims for kind in given)
    depth = indices[-1]
    assert isinstance(depth, int)
    return _same(updates, (*indices[:-1], *data[depth:]))


def _attention(given: Types, results: Types, a: Attrs) -> Conditions:
    letters = letters_of(a.spec, [kind.rank for kind in given])
    extents = extents_of(letters, given) | dict(zip(letters.out, results[0].dims, strict=True))
    for i, (part, kind) in enumerate(zip(letters.operands, given, strict=False)):
        shared = "" if i == 3 else letters.width + letters.key  # what never repeats
        for c, dim in zip(part, kind.dims, strict=True):
            if dim != 1 or c in shared:
                yield Condition(dim, extents[c], True)


def _require(_: Types, __: Types, a: Attrs) -> Conditions:
    yield Condition(a.left, a.right, True)


def _suppress(given: Types, results: Types, _: Attrs) -> Conditions:
    boxes, order, eligible = (kind.dims for kind in given[:3])
    yield from _same(boxes, (order[0], order[2], 4))
    yield from _same(order, eligible)


def _roi_align(given: Types, _: Types, __: Attrs) -> Conditions:
    yield from _same(given[1].dims, (given[2].dims[0], 4))
    yield from _not_empty(given[0].dims, (0, 2, 3))


def _square(given: Types, _: Types, __: Attrs) -> Conditions:
    return _same(given[0].dims[-1:], given[0].dims[-2:-1])


def _loop(given: Types, results: Types, _: Attrs) -> Conditions:
    return chain.from_iterable(
        _same(g.dims, r.dims) for g, r in zip(given, results[: len(given)], strict=True)
    )


_RULES: Mapping[str, Rule] = {
    "broadcast": _broadcast,
    "contract": _contract,
    "concat": _concat,
    "reshape": _reshape,
    "slice": _slice,
    "pad": _pad,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "pool": _pool,
    "pool_argmax": _pool,
    "resize": _resize,
    "arg_reduce": _arg_reduce,
    "layer_norm": _norm,
    "rms_norm": _norm,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "attention": _attention,
    "loop": _loop,
    "require": _require,
    "suppress": _suppress,
    "roi_align": _roi_align,
    "determinant": _square,
}
