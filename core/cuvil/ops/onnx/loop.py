"""Loop: with or without a trip count, ended by its condition, carrying tensors that grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cuvil.ir.dims import Dim, SymDim, dim_min, known_equal, symbols
from cuvil.ir.names import Region
from cuvil.ir.names import Value as SSAValue
from cuvil.ir.types import TensorType
from cuvil.ops.compose.helpers import index_list
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.control import check_alike
from cuvil.ops.onnx.dynamic import as_value, extents
from cuvil.ops.onnx.registry import onnx_op

MOST_STEPS = 256  # of an unrolled loop
COUNT = TensorType.of((), "i64")


@onnx_op("Loop")
def loop(
    cx: Cx, trip: Value = None, condition: Value = None, *initial: Value, body: Any
) -> tuple[Value, ...]:
    """At most `trip` times, while the condition holds; carried values, then stacked outputs."""
    if any(isinstance(v, list) for v in initial):
        return _unrolled(cx, trip, condition, list(initial), body)
    count = None if trip is None else extents(cx, trip, "the trip count")[0]
    first = cx.b.scalar(True, "bool") if condition is None else cx.b.reshape(condition, dims=())
    known = cx.known(first)
    if known is not None and not known:
        count = 0
    made = _Loop(cx, body, count, list(initial))
    region, types = made.settled()
    early = count != 0 and (known is None or not made.goes_on)
    if count is None and not early:
        cx.fail("the loop never ends")
    return made.emit(region, types, first if early else None)


def _unrolled(
    cx: Cx, trip: Value, condition: Value, state: list[Value], body: Any
) -> tuple[Value, ...]:
    """A loop that carries sequences, which are lists while a model is imported: step by step."""
    if trip is None:
        cx.fail("a loop that carries sequences needs a trip count")
    (count,) = index_list(cx, trip, "the trip count")
    if count > MOST_STEPS:
        cx.fail(f"{count} steps of a loop that carries sequences; the limit is {MOST_STEPS}")
    stacks: list[list[Value]] = []
    for k in range(count):
        if condition is not None:
            known = cx.known(condition)
            if known is None:
                cx.needs(condition, "the end of a loop that carries sequences")
            if not known.all():
                break
        step = as_value(cx, k)
        condition, *values = cx.inline(body, step, cx.b.scalar(True, "bool"), *state)
        state, given = values[: len(state)], values[len(state) :]
        stacks = stacks or [[] for _ in given]
        for stack, value in zip(stacks, given, strict=True):
            stack.append(cx.b.reshape(value, dims=(1, *cx.dims(value))))
    stacked = [cx.b.concat(*s, axis=0) if len(s) > 1 else s[0] for s in stacks]
    return (*state, *stacked)


@dataclass
class _Loop:
    """A loop while its body is imported, again until the types of what it carries hold.

    growing: axes of carried values whose extents change, by (value, axis). The region's arguments
    are the condition if it ends early, the carried values, then the extents of growing axes.
    """

    cx: Cx
    body: Any
    trip: Dim | None
    initial: list[Value]
    growing: dict[tuple[int, int], SymDim] = field(default_factory=dict)
    bounds: dict[tuple[int, int], Dim | None] = field(default_factory=dict)
    goes_on: bool = False
    counter: SymDim | None = None

    def settled(self) -> tuple[Region, tuple[TensorType, ...]]:
        """The region, and what it yields: condition, carried values, stacked ones, extents."""
        while True:
            region, types = self._imported()
            found = self._changing(types)
            if not found:
                return region, self._with_extents(region, types)
            self.cx.discard(region)
            for place, most in found.items():
                self.growing[place] = None  # type: ignore[assignment]
                self.bounds[place] = most

    def _imported(self) -> tuple[Region, tuple[TensorType, ...]]:
        cx = self.cx
        last = None if self.trip is None else self.trip - 1
        self.counter = cx.new_bounded("step", last)
        for place in self.growing:
            self.growing[place] = cx.new_bounded("grown", self.bounds[place])
        carried = [self._argument_type(i) for i in range(len(self.initial))]
        conditions: list[Value] = []

        def build(*args: SSAValue) -> Sequence[SSAValue]:
            sizes = args[1 + len(carried) :]
            for symbol, value in zip(self.growing.values(), sizes, strict=True):
                cx.bind_to(value, symbol)
            step = as_value(cx, self.counter)  # type: ignore[arg-type]
            values = args[1 : 1 + len(carried)]
            after, *rest = cx.inline(self.body, step, cx.b.scalar(True, "bool"), *values)
            conditions.append(after)
            return [cx.b.reshape(after, dims=()), *rest]

        kinds = [TensorType.of((), "bool"), *carried, *[COUNT] * len(self.growing)]
        region, types = cx.region(kinds, build)
        cx.close(self.counter)
        known = cx.known(conditions[0])
        self.goes_on = known is not None and bool(known.all())
        return region, types

    def _argument_type(self, i: int) -> TensorType:
        kind = self.cx.type(self.initial[i])
        return kind.with_dims(self.growing.get((i, a), d) for a, d in enumerate(kind.dims))

    def _changing(self, types: Sequence[TensorType]) -> dict[tuple[int, int], Dim | None]:
        """Axes that an iteration leaves with another extent, and their upper bounds."""
        found: dict[tuple[int, int], Dim | None] = {}
        for i in range(len(self.initial)):
            before, after = self._argument_type(i), types[1 + i]
            check_alike(self.cx, before, after, "two iterations")
            for axis, (a, b) in enumerate(zip(before.dims, after.dims, strict=True)):
                place = (i, axis)
                if place in self.growing:
                    most = self._most(place, a, b)
                    if most != self.bounds[place] and most is not None:
                        found[place] = most
                elif not known_equal(a, b):
                    found[place] = None
        return found

    def _most(self, place: tuple[int, int], before: Dim, after: Dim) -> Dim | None:
        """The bound of an axis that grows by the same amount each time."""
        added, start = after - before, self.cx.dims(self.initial[place[0]])[place[1]]
        inner = {str(s) for s in self.growing.values()} | {str(self.counter)}
        if self.trip is None or inner & set(symbols(added)) or not self.cx.at_least(added, 0):
            return None
        total = start + added * self.trip
        return total if self.cx.upper(total) is not None else None

    def _with_extents(self, region: Region, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Also yields the extents of growing axes, which are carried, before stacked values."""
        ends = [types[1 + i].dims[axis] for i, axis in self.growing]
        carried = 1 + len(self.initial)
        self._carry(region, carried, ends)
        return (*types[:carried], *[COUNT] * len(ends), *types[carried:])

    def _carry(self, region: Region, at: int, dims: Sequence[Dim]) -> None:
        """Yields extents as values `at` and following."""
        if dims:
            self.cx.extend(region, lambda: [as_value(self.cx, d) for d in dims])
            _reorder(region, at, len(dims))

    def emit(
        self, region: Region, types: Sequence[TensorType], condition: Value
    ) -> tuple[Value, ...]:
        """The loop itself; extents that it finds are bound behind it."""
        cx, n, grown = self.cx, len(self.initial), list(self.growing)
        early, stacked = condition is not None, types[1 + n + len(grown) :]
        state = [*([condition] if early else _dropped(region)), *self.initial]
        first = len(state) - n
        state += [as_value(cx, cx.dims(self.initial[i])[a]) for i, a in grown]
        ends = {place: cx.new_bounded("final", self.bounds[place]) for place in grown}
        found: list[Dim] = list(ends.values())
        count = self.trip
        if early and stacked:  # the number of iterations is found, too
            assert self.counter is not None
            region.block.insert_arg(COUNT, len(region.block.args))
            self._carry(region, len(state), [self.counter + 1])
            count = cx.new_bounded("iterations", self.trip)
            found.append(count)
            state.append(as_value(cx, 0))
        stacks = [self._stack(region, len(state) - len(found), kind, state, found, count)
                  for kind in stacked]  # fmt: skip
        carried = [
            kind.with_dims(ends.get((i, a), d) for a, d in enumerate(kind.dims))
            for i, kind in enumerate(self._argument_type(k) for k in range(n))
        ]
        results = [*[TensorType.of((), "bool")] * first, *carried, *[COUNT] * len(found), *stacks]
        values = cx.b.emit_regions(
            "loop", state, results, [region], trip=self.trip, symbol=str(self.counter), early=early
        )
        for symbol, value in zip(found, values[first + n :], strict=False):
            assert isinstance(symbol, SymDim)
            cx.bind_to(value, symbol)
        return (*values[first : first + n], *values[len(state) :])

    def _stack(
        self, region: Region, first: int, kind: TensorType, state: list[Value], found: list[Dim],
        count: Dim | None,
    ) -> TensorType:  # fmt: skip
        """The type of a stack. Extents that the body finds are carried: all must be the same."""
        cx, dims = self.cx, list(kind.dims)
        for axis, dim in enumerate(kind.dims):
            if not cx.inner(dim):
                continue
            before = region.block.insert_arg(COUNT, len(region.block.args))
            cx.extend(region, partial(self._same_as, before, dim))
            _reorder(region, first + len(found), 1)
            state.append(as_value(cx, 0))
            dims[axis] = cx.new_bounded("stacked", cx.upper(dim))
            found.append(dims[axis])
        assert count is not None
        return kind.with_dims((count, *dims))

    def _same_as(self, before: SSAValue, dim: Dim) -> list[Value]:
        """Requires an extent to be that of the iteration before, if there is one."""
        later = dim_min(self.counter, 1)  # type: ignore[arg-type]
        last = self.cx.new_bounded("last", None)
        self.cx.bind_to(before, last)
        self.cx.require(later * last, later * dim)
        return [as_value(self.cx, dim)]


def _dropped(region: Region) -> list[Value]:
    """Takes the condition out of a region that never ends a loop; nothing is left of it."""
    last = region.block.last_op
    assert last is not None
    last.operands = list(last.operands)[1:]
    region.block.erase_arg(region.block.args[0])
    return []


def _reorder(region: Region, at: int, count: int) -> None:
    """Moves the last `count` values that a region yields to position `at`."""
    last = region.block.last_op
    assert last is not None
    values = list(last.operands)
    moved = values[len(values) - count :]
    last.operands = [*values[:at], *moved, *values[at : len(values) - count]]
