"""The softmax of a panel's scores, which lie as [key][query]: nothing crosses lanes."""

from collections.abc import Callable, Sequence
from functools import partial

from llvmlite import ir

from cuvil.codegen.attention.exponential import exp_below
from cuvil.codegen.attention.schedule import UNROLL, Panel
from cuvil.codegen.attention.spec import AttentionSpec
from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    F32,
    I8,
    I64,
    PTR,
    address,
    for_range,
    i64,
    lane_mask,
    load,
    load_invariant,
    masked_load,
    repeat_guarded,
    splat,
    store,
    vector,
    zero,
)
from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.ir.dtypes import dtype

_INFINITY = float("inf")


class Softmax:
    """Emits the passes over the scores of a block of keys.

    State between blocks: the greatest score of every query, then the sum of its weights; a vector
    of queries each.
    """

    def __init__(
        self,
        at: Arith,
        spec: AttentionSpec,
        facts: TargetFacts,
        panel: Panel,
        buffers: ir.Value,
        batch: Sequence[ir.Value],
        row: ir.Value,
        rows: ir.Value,
        scores: ir.Value,
    ) -> None:
        assert at.b is not None
        self.at, self.b, self.spec, self.panel = at, at.b, spec, panel
        self.buffers, self.batch, self.row, self.rows = buffers, batch, row, rows
        self.scores = scores
        self.kind = vector(F32, panel.lanes)
        self.m = MathBuilder(self.b, dtype("f32"), panel.lanes, facts)
        self.groups = range(panel.vectors)

    def start(self) -> list[ir.Value]:
        """The state before the first block."""
        lowest = self.m.constant(-_INFINITY)
        return [lowest for _ in self.groups] + [zero(self.kind) for _ in self.groups]

    # -- masks ---------------------------------------------------------------------------------
    def mask(self, first: Index, count: Index) -> None:
        """Masks the scores of `count` keys from the `first` on."""
        if self.spec.mask:
            full = self.b.icmp_signed("==", self.rows, i64(self.panel.width))
            if self.spec.rows.mask == 0:
                self._mask_keys(first, count, None)
            else:
                with self.b.if_else(full) as (then, otherwise):
                    with then:
                        self._mask_keys(first, count, None)
                    with otherwise:
                        self._mask_keys(first, count, self._existing())
        if self.spec.causal:
            self._hide_later(first, count)

    def _existing(self) -> list[ir.Value]:
        """Which queries of each vector exist."""
        lanes = self.panel.lanes
        return [
            lane_mask(self.b, lanes, self.b.sub(self.rows, i64(g * lanes))) for g in self.groups
        ]

    def _mask_keys(self, first: Index, count: Index, lanes: list[ir.Value] | None) -> None:
        b, at, spec = self.b, self.at, self.spec
        element = F32 if spec.mask == "add" else I8
        base = load_invariant(b, self.buffers, spec.mask_at, PTR)
        strides = [at.size(dim.mask) for dim in spec.batch]
        start = at.add(at.dot(self.batch, strides), at.mul(self.row, spec.rows.mask))
        base = address(b, base, at.value(start), element)
        with for_range(b, i64(0), at.value(count)) as key:
            place = at.value(at.mul(at.add(first, key), at.size(spec.keys.mask)))
            for g in self.groups:
                mask = self._load_mask(base, place, element, g, lanes)
                self._update(key, g, partial(self._masked, mask))

    def _load_mask(
        self,
        base: ir.Value,
        place: ir.Value,
        element: ir.Type,
        group: int,
        lanes: list[ir.Value] | None,
    ) -> ir.Value:
        b, count = self.b, self.panel.lanes
        if self.spec.rows.mask == 0:
            return splat(b, load(b, base, place, element), count)
        at = b.add(place, i64(group * count))
        kind = vector(element, count)
        if lanes is None or count == 1:
            return load(b, base, at, kind)
        return masked_load(b, base, at, kind, lanes[group])

    def _masked(self, mask: ir.Value, x: ir.Value) -> ir.Value:
        if self.spec.mask == "add":
            return self.b.fadd(x, mask)
        seen = self.b.icmp_unsigned("!=", mask, zero(mask.type))
        return self.b.select(seen, x, self.m.constant(self.spec.fill))

    def _hide_later(self, first: Index, count: Index) -> None:
        """Keys behind a query get -inf; those up to the panel's first query need no look."""
        b, at, lanes = self.b, self.at, self.panel.lanes
        numbers = ir.Constant(vector(I64, lanes), list(range(lanes)))
        begin = at.maximum(0, at.sub(self.row, first))
        with for_range(b, at.value(begin), at.value(count)) as key:
            ahead = b.sub(at.value(at.add(first, key)), self.row)
            for g in self.groups:
                own = b.sub(ahead, i64(g * lanes))
                hidden = b.icmp_signed(">", splat(b, own, lanes), numbers)
                self._update(key, g, partial(b.select, hidden, self.m.constant(-_INFINITY)))

    def _update(self, key: ir.Value, group: int, change: Callable[[ir.Value], ir.Value]) -> None:
        place = self._place(key, 0, group)
        store(self.b, change(load(self.b, self.scores, place, self.kind)), self.scores, place)

    # -- weights -------------------------------------------------------------------------------
    def weights(self, count: Index, state: list[ir.Value]) -> tuple[list[ir.Value], list[ir.Value]]:
        """Scores to weights e**(score - greatest); returns the new state, and the factors for what
        was summed before. Where all scores so far are -inf, weights and sums are 0."""
        m, b, vectors = self.m, self.b, self.panel.vectors
        trips = self._pad(count)
        greatest = repeat_guarded(b, trips, state[:vectors], self._greatest)
        shifts = [m.select(m.compare("eq", x, -_INFINITY), 0.0, x) for x in greatest]
        factors = [
            exp_below(m, m.exact_sub(old, new))
            for old, new in zip(state[:vectors], shifts, strict=True)
        ]
        scaled = [b.fmul(x, f) for x, f in zip(state[vectors:], factors, strict=True)]
        totals = repeat_guarded(b, trips, scaled, lambda i, t: self._exponentials(i, t, shifts))
        return [*greatest, *totals], factors

    def _pad(self, count: Index) -> ir.Value:
        """Puts -inf behind the last key, up to whole trips; returns how many."""
        at = self.at
        trips = at.ceil_div(count, UNROLL)
        lowest = self.m.constant(-_INFINITY)
        with for_range(self.b, at.value(count), at.value(at.mul(trips, UNROLL))) as key:
            for g in self.groups:
                store(self.b, lowest, self.scores, self._place(key, 0, g))
        return at.value(trips)

    def _greatest(self, trip: ir.Value, best: list[ir.Value]) -> list[ir.Value]:
        found = []
        for g, old in enumerate(best):
            values = [self._score(trip, u, g) for u in range(UNROLL)]
            found.append(self._larger(self._tree(values, self._larger), old))
        return found

    def _larger(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.m.select(self.m.compare("gt", x, y), x, y)

    def _exponentials(
        self, trip: ir.Value, totals: list[ir.Value], shifts: list[ir.Value]
    ) -> list[ir.Value]:
        key = self.b.mul(trip, i64(UNROLL))
        found = []
        for g, total in enumerate(totals):
            values = []
            for u in range(UNROLL):
                below = self.m.exact_sub(self._score(trip, u, g), shifts[g])
                values.append(exp_below(self.m, below))
                store(self.b, values[-1], self.scores, self._place(key, u, g))
            found.append(self.b.fadd(total, self._tree(values, self.b.fadd)))
        return found

    def _tree(
        self, values: list[ir.Value], join: Callable[[ir.Value, ir.Value], ir.Value]
    ) -> ir.Value:
        while len(values) > 1:
            values = [join(x, y) for x, y in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    def _score(self, trip: ir.Value, step: int, group: int) -> ir.Value:
        key = self.b.mul(trip, i64(UNROLL))
        return load(self.b, self.scores, self._place(key, step, group), self.kind)

    def _place(self, key: ir.Value, step: int, group: int) -> ir.Value:
        row = self.b.mul(key, i64(self.panel.width))
        return self.b.add(row, i64(step * self.panel.width + group * self.panel.lanes))

    def store_inverse(self, totals: list[ir.Value], keys: Index, target: ir.Value) -> None:
        """1 / sum of weights of every query; 0 where there are no keys."""
        some = self.at.less(0, keys)
        for g, total in enumerate(totals):
            inverse = self.m.div(1.0, total)
            if not isinstance(some, int):
                none = self.b.icmp_signed("==", some, i64(0))
                inverse = self.b.select(none, zero(self.kind), inverse)
            elif not some:
                inverse = zero(self.kind)
            store(self.b, inverse, target, i64(g * self.panel.lanes))
