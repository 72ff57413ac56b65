"""Micro-kernels: tile[rows, columns] (+)= sum over k of A[row, k] * B[k, column], in registers.

One internal function per shape serves every contraction of a module: strides and extents are
parameters. The accumulators are SSA values carried by the k loops; nothing is masked.
"""

from collections.abc import Sequence
from functools import partial

from llvmlite import ir

from cuvil.codegen.contraction.dot import (
    add,
    align_of,
    dot,
    dot_matrices,
    in_parts,
    lone_part,
    numbers_of,
    part_bits,
    sum_type,
    upper_part,
)
from cuvil.codegen.contraction.early_loads import Operands, Step, early_steps
from cuvil.codegen.contraction.half_steps import half_steps
from cuvil.codegen.contraction.lane_steps import LaneSteps, lane_of, lane_steps
from cuvil.codegen.contraction.matrix_steps import (
    MatrixOperands,
    MatrixSteps,
    count_of,
    matrix_steps,
    sums_of,
    tile_of,
)
from cuvil.codegen.contraction.micro_shape import MicroKernel
from cuvil.codegen.facts import GROUPS, TargetFacts, dtype_bits
from cuvil.codegen.llvm_util import (
    I16,
    I32,
    I64,
    PTR,
    element_type,
    fma,
    i64,
    internal_function,
    load,
    prefetch,
    repeat_guarded,
    splat,
    store,
    vector,
    zero,
)
from cuvil.codegen.scalars.convert import load_convert

_LINE = 64  # bytes; a wrong guess only wastes or misses a prefetch


def micro_kernel(module: ir.Module, facts: TargetFacts, shape: MicroKernel) -> ir.Function:
    """The module's function for `shape`, emitted at its first use.

    void f(a, b, tile, resume, row stride 0, row stride 1, (extent, A stride) per k level), then the
    row pitch of B when `panel` is 0, and what is asked for when `following` is not. Strides count
    elements. tile is dense [rows][vectors*lanes]; when resume is not zero the sums start from its
    values, as they must where `dot.is_shifted`. Any extent may be zero or less: the sum is then
    empty.
    """
    if shape.name in module.globals:
        return module.globals[shape.name]
    parameters = [PTR] * 3 + [I64] * (3 + 2 * shape.levels + (shape.panel == 0))
    parameters += [PTR] * bool(shape.following)
    function = internal_function(module, shape.name, parameters, facts)
    for pointer in function.args[:3]:
        pointer.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    _Emitter(b, function.args, shape, facts).emit()
    b.ret_void()
    return function


def tile_sums(
    b: ir.IRBuilder, args: Sequence[ir.Value], shape: MicroKernel, facts: TargetFacts
) -> list[ir.Value]:
    """The same sums as vectors, row by row, where the builder stands; args are those of
    `micro_kernel` without tile and resume. For sums in one piece: `chunk` is 0."""
    a, panel, *strides = args
    return _Emitter(b, [a, panel, None, None, *strides], shape, facts).sums()


class _Emitter:
    def __init__(
        self,
        b: ir.IRBuilder,
        args: Sequence[ir.Value | None],
        shape: MicroKernel,
        facts: TargetFacts,
    ) -> None:
        self.b = b
        self.shape, self.facts = shape, facts
        self.element = element_type("f16" if shape.half_rows else shape.dtype)
        self.kind = vector(sum_type(shape.dtype), shape.lanes)
        self.a, self.panel, self.tile, self.resume, *strides = args
        self.following = strides.pop() if shape.following else None
        self.row_strides, self.loops = strides[:2], strides[2:]
        self.pitch = i64(shape.panel) if shape.panel else strides[-1]
        self.tile_rows = shape.rows[0] * shape.rows[1]
        self.count = self.tile_rows * shape.vectors
        if shape.matrix:
            self.count = count_of(self.tile_rows, shape.vectors)

    def emit(self) -> None:
        """The whole body: start, k loops, stores."""
        empty = [zero(self.kind)] * (self.count * self.shape.chains)
        if self.shape.chunk:
            with self.b.if_then(self.b.icmp_signed("==", self.resume, i64(0))):
                self._store(empty[: self.count])
            _, *sums = self._level(0, i64(0), i64(0), [i64(0), *empty])[1]
            self._add_to_tile(sums)
        else:
            starts = self._starts()
            sums = self._level(0, i64(0), i64(0), [*starts, *empty[self.count :]])[1]
            self._store(self._joined(sums))

    def sums(self) -> list[ir.Value]:
        """The sums as the tile's vectors."""
        empty = [zero(self.kind)] * (self.count * self.shape.chains)
        return self._by_row(self._joined(self._level(0, i64(0), i64(0), empty)[1]))

    def _joined(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The chains of each accumulator, added up."""
        result = sums[: self.count]
        for chain in range(1, self.shape.chains):
            extra = sums[chain * self.count : (chain + 1) * self.count]
            result = [add(self.b, x, y) for x, y in zip(result, extra, strict=True)]
        return result

    def _store(self, sums: list[ir.Value]) -> None:
        for place, value in zip(self._places(), self._by_row(sums), strict=True):
            store(self.b, value, self.tile, place)

    def _add_to_tile(self, sums: list[ir.Value]) -> None:
        for place, value in zip(self._places(), self._by_row(self._joined(sums)), strict=True):
            old = load(self.b, self.tile, place, self.kind)
            store(self.b, add(self.b, old, value), self.tile, place)

    def _by_row(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums as the tile's vectors."""
        if self.shape.matrix:
            return tile_of(self.b, sums, self.tile_rows, self.shape.vectors)
        return sums

    def _places(self) -> list[ir.Value]:
        """Element offsets of the tile's vectors."""
        return [i64(at * self.shape.lanes) for at in range(self.tile_rows * self.shape.vectors)]

    def _starts(self) -> list[ir.Value]:
        b, entry = self.b, self.b.block
        again, begin = b.append_basic_block("resume"), b.append_basic_block("begin")
        b.cbranch(b.icmp_signed("!=", self.resume, i64(0)), again, begin)
        b.position_at_end(again)
        loaded = [load(b, self.tile, place, self.kind) for place in self._places()]
        if self.shape.matrix:
            loaded = sums_of(b, loaded, self.tile_rows, self.shape.vectors)
        b.branch(begin)
        b.position_at_end(begin)
        phis = [b.phi(self.kind) for _ in loaded]
        for phi, value in zip(phis, loaded, strict=True):
            phi.add_incoming(zero(self.kind), entry)
            phi.add_incoming(value, again)
        return phis

    def _level(
        self, level: int, a: ir.Value, k: ir.Value, sums: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Loops of `level` and inside; a: element offset into A; k: rows of B used so far."""
        extent, stride = self.loops[2 * level : 2 * level + 2]
        if level == self.shape.levels - 1:
            return self._innermost(extent, stride, a, k, sums)

        def trip(i: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            inside = self.b.add(a, self.b.mul(i, stride))
            used, inner = self._level(level + 1, inside, values[0], values[1:])
            return [used, *inner]

        used, *out = repeat_guarded(self.b, extent, [k, *sums], trip)
        return used, out

    def _innermost(
        self, extent: ir.Value, stride: ir.Value, a: ir.Value, k: ir.Value, sums: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        b, chunk = self.b, i64(self.shape.chunk)
        rows = self._row_pointers(a)
        panel = self._in_b(self.panel, b.mul(k, self.pitch))
        if self.following is not None:
            self.asked = self._in_b(self.following, b.mul(k, i64(self.shape.following)))
        if not self.shape.chunk:
            sums = self._steps(rows, panel, stride, i64(0), extent, sums)
            return b.add(k, extent), sums

        def piece(i: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            first = b.mul(i, chunk)
            left = b.sub(extent, first)
            steps = b.select(b.icmp_signed("<", left, chunk), left, chunk)
            summed = self._steps(rows, panel, stride, first, steps, values[1:])
            return self._begun_anew(b.add(values[0], steps), summed)

        pieces = b.sdiv(b.add(extent, i64(self.shape.chunk - 1)), chunk)
        return b.add(k, extent), repeat_guarded(b, pieces, sums, piece)

    def _begun_anew(self, steps: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """[steps since the sums began, sums], empty again after `chunk` steps."""
        b, before = self.b, self.b.block
        full, after = b.append_basic_block("chunk"), b.append_basic_block("summing")
        b.cbranch(b.icmp_signed(">=", steps, i64(self.shape.chunk)), full, after)
        b.position_at_end(full)
        self._add_to_tile(sums)
        b.branch(after)
        b.position_at_end(after)
        state = []
        for value in (steps, *sums):
            phi = b.phi(value.type)
            phi.add_incoming(value, before)
            phi.add_incoming(ir.Constant(value.type, None), full)
            state.append(phi)
        return state

    def _steps(
        self,
        rows: list[ir.Value],
        panel: ir.Value,
        stride: ir.Value,
        start: ir.Value,
        count: ir.Value,
        sums: list[ir.Value],
    ) -> list[ir.Value]:
        """`count` steps of the innermost k from `start` on."""
        b, unroll = self.b, self.shape.unroll
        if self.shape.matrix:
            steps = self._matrix_steps(rows, panel, self.shape.matrix)
            return matrix_steps(b, steps, start, count, sums)
        if self.shape.by_lane:
            lanes = self._lane_steps(rows, panel)
            trips = b.sdiv(count, i64(lanes.lanes))
            sums = lane_steps(b, lanes, start, trips, sums)
            done = b.mul(trips, i64(lanes.lanes))
            start, count = b.add(start, done), b.sub(count, done)
        if self.shape.early:
            if in_parts(self.shape.dtype, self.facts):
                parts = GROUPS[self.shape.dtype] // part_bits(self.shape.dtype)
                bounds = b.mul(start, i64(parts)), b.mul(count, i64(parts))
                return early_steps(b, self._part_step(rows, panel, stride, parts), *bounds, sums)
            return early_steps(b, self._early_step(rows, panel, stride), start, count, sums)

        def trip(i: ir.Value, values: list[ir.Value], first: ir.Value, steps: int) -> list:
            step = b.add(first, b.mul(i, i64(steps)))
            for u in range(steps):
                values = self._step(rows, panel, b.add(step, i64(u)), stride, values, u)
            return values

        whole = b.sdiv(count, i64(unroll)) if unroll > 1 else count
        sums = repeat_guarded(b, whole, sums, lambda i, v: trip(i, v, start, unroll))
        if unroll > 1:
            done = b.mul(whole, i64(unroll))
            left, rest = b.sub(count, done), b.add(start, done)
            sums = repeat_guarded(b, left, sums, lambda i, v: trip(i, v, rest, 1))
        return sums

    def _matrix_steps(
        self, rows: list[ir.Value], panel: ir.Value, matrix: MatrixOperands
    ) -> MatrixSteps:
        b, shape, align = self.b, self.shape, align_of(self.shape.dtype)
        kind = vector(self.element, shape.lanes)

        def numbers(row: int, k: ir.Value) -> ir.Value:
            return load(b, rows[row], k, kind, align)

        def pair(nth: int, k: ir.Value) -> ir.Value:
            start = b.mul(self.row_strides[1], i64(2 * nth))
            return load(b, rows[0], b.add(start, b.mul(k, i64(2))), kind)

        return MatrixSteps(
            len(rows), shape.vectors, shape.chains, pair if matrix.rows else numbers,
            lambda row, k: load(b, rows[row], k, self.element, align),
            lambda c, k: self._asked_column(panel, c, k),
            lambda x, y, total: dot_matrices(b, x, y, total, shape.dtype, self.facts),
            matrix,
        )  # fmt: skip

    def _asked_column(self, panel: ir.Value, c: int, k: ir.Value) -> ir.Value:
        return self._column(panel, self._asked(panel, c, k), c)

    def _asked(self, panel: ir.Value, c: int, k: ir.Value) -> ir.Value:
        """A row of B, for a vector; along with the first that of later steps is asked for."""
        row = self.b.mul(k, self.pitch)
        if c == 0:
            self._prefetch(panel, row, k)
        return row

    def _lane_steps(self, rows: list[ir.Value], panel: ir.Value) -> LaneSteps:
        b, shape, facts = self.b, self.shape, self.facts
        lanes = facts.lanes(shape.dtype)
        if shape.half_rows and facts.half_products:
            tile = len(rows), shape.vectors, shape.chains
            return half_steps(b, tile, facts, rows, panel, partial(self._asked, panel))

        def numbers(row: int, k: ir.Value) -> ir.Value:
            if shape.half_rows:
                return load_convert(b, load(b, rows[row], k, vector(I16, lanes)), "f16", facts)
            loaded = load(b, rows[row], k, vector(self.element, lanes))
            return numbers_of(b, loaded, shape.dtype, shape.lanes, facts)

        return LaneSteps(
            len(rows), shape.vectors, shape.chains, lanes, numbers,
            lambda c, k: self._asked_column(panel, c, k),
            lambda number, column, total, _: dot(b, number, column, total, shape.dtype, facts),
            lane_of,
        )  # fmt: skip

    def _early_step(self, rows: list[ir.Value], panel: ir.Value, stride: ir.Value) -> Step:
        b, shape, facts = self.b, self.shape, self.facts

        def operands(k: ir.Value) -> Operands:
            row, place = b.mul(k, self.pitch), k if shape.unit else b.mul(k, stride)
            self._prefetch(panel, row, k)
            return Operands(
                lambda v: self._column(panel, row, v),
                lambda i: self._number(rows[i], place),
            )

        def multiply(number: ir.Value, column: ir.Value, total: ir.Value) -> ir.Value:
            return dot(b, splat(b, number, shape.lanes), column, total, shape.dtype, facts)

        return Step(len(rows), shape.vectors, operands, multiply)

    def _part_step(
        self, rows: list[ir.Value], panel: ir.Value, stride: ir.Value, parts: int
    ) -> Step:
        """A step for each part of a group: of B they are taken out of vectors of groups."""
        b, shape, facts = self.b, self.shape, self.facts
        bits = part_bits(shape.dtype)

        def operands(k: ir.Value) -> Operands:
            group, nth = b.udiv(k, i64(parts)), b.and_(k, i64(parts - 1))
            row = b.mul(group, self.pitch)
            place = k if shape.unit else b.add(b.mul(b.mul(group, i64(parts)), stride), nth)
            up = b.trunc(b.sub(i64(32 - bits), b.mul(nth, i64(bits))), I32)
            self._prefetch(panel, row, group)

            def column(v: int) -> ir.Value:
                groups = self._column(panel, row, v)
                return upper_part(b, b.shl(groups, splat(b, up, shape.lanes)), shape.dtype)

            def number(i: int) -> ir.Value:
                return lone_part(b, rows[i], place, shape.dtype)

            return Operands(column, number)

        def multiply(number: ir.Value, column: ir.Value, total: ir.Value) -> ir.Value:
            factor = splat(b, number, shape.lanes)
            if shape.dtype == "u8s8x4":
                return b.add(total, b.mul(factor, column))
            return fma(b, factor, column, total, facts.fma)

        return Step(len(rows), shape.vectors, operands, multiply)

    def _column(self, panel: ir.Value, row: ir.Value, v: int) -> ir.Value:
        place = self.b.add(row, i64(v * self.shape.lanes))
        if self.shape.halves:
            stored = load(self.b, panel, place, vector(I16, self.shape.lanes))
            return load_convert(self.b, stored, "f16", self.facts)
        return load(self.b, panel, place, vector(element_type(self.shape.dtype), self.shape.lanes))

    def _number(self, row: ir.Value, place: ir.Value) -> ir.Value:
        if self.shape.half_rows:
            return load_convert(self.b, load(self.b, row, place, I16), "f16", self.facts)
        loaded = load(self.b, row, place, self.element, align_of(self.shape.dtype))
        return numbers_of(self.b, loaded, self.shape.dtype, self.shape.lanes, self.facts)

    def _row_pointers(self, a: ir.Value) -> list[ir.Value]:
        b, (outer, inner) = self.b, self.shape.rows
        base = self._offset(self.a, a)
        pointers = []
        for i in range(outer):
            for j in range(inner):
                shift = b.add(
                    b.mul(self.row_strides[0], i64(i)), b.mul(self.row_strides[1], i64(j))
                )
                pointers.append(self._offset(base, shift))
        return pointers

    def _step(
        self,
        rows: list[ir.Value],
        panel: ir.Value,
        k: ir.Value,
        stride: ir.Value,
        sums: list[ir.Value],
        u: int,
    ) -> list[ir.Value]:
        """One k: a rank-1 update of the chain that the unrolled step u belongs to."""
        b, shape = self.b, self.shape
        chain = (u % shape.chains) * self.count
        row = b.mul(k, self.pitch)
        columns = [self._column(panel, row, v) for v in range(shape.vectors)]
        self._prefetch(panel, row, k)
        place = k if shape.unit else b.mul(k, stride)
        out = list(sums)
        for i, pointer in enumerate(rows):
            value = splat(b, self._number(pointer, place), shape.lanes)
            for v, column in enumerate(columns):
                at = chain + i * shape.vectors + v
                out[at] = dot(b, value, column, out[at], shape.dtype, self.facts)
        return out

    def _prefetch(self, panel: ir.Value, row: ir.Value, k: ir.Value) -> None:
        """Asks for the same columns of B `ahead` steps later: across pages, into the next panel. Or
        for the next `following` elements of what follows: often for a line that has come by then.
        """
        b, shape = self.b, self.shape
        line = _LINE // (dtype_bits(shape.stored) // 8)
        if self.following is not None:
            for part in range(0, shape.following, line):
                later = b.add(b.mul(k, i64(shape.following)), i64(part))
                prefetch(b, self._in_b(self.asked, later))
        elif shape.ahead:
            for column in range(0, shape.vectors * shape.lanes, line):
                ahead = b.mul(self.pitch, i64(shape.ahead))
                prefetch(b, self._in_b(panel, b.add(row, b.add(ahead, i64(column)))))

    def _in_b(self, pointer: ir.Value, count: ir.Value) -> ir.Value:
        return self.b.gep(pointer, [count], source_etype=element_type(self.shape.stored))

    def _offset(self, pointer: ir.Value, count: ir.Value) -> ir.Value:
        return self.b.gep(pointer, [count], source_etype=self.element)
