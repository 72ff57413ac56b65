"""The contraction kernel: tasks, blocks and tiles around the micro-kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index, static_product
from cuvil.codegen.contraction.cut import following, make_cut
from cuvil.codegen.contraction.dot import is_shifted, sum_type
from cuvil.codegen.contraction.epilogue import Epilogue, epilogue_length, identity
from cuvil.codegen.contraction.half_steps import widen_columns
from cuvil.codegen.contraction.matrix_steps import pair_columns
from cuvil.codegen.contraction.micro_shape import MicroKernel
from cuvil.codegen.contraction.microkernel import micro_kernel
from cuvil.codegen.contraction.rows_of_a import RowsOfA
from cuvil.codegen.contraction.schedule import (
    Schedule,
    make_schedule,
    pack_bytes,
    sums_bytes,
    tile_shape,
)
from cuvil.codegen.contraction.shifted import fill_tile, starts_function
from cuvil.codegen.contraction.spec import ContractionSpec
from cuvil.codegen.contraction.tile_epilogue import tile_epilogue_function, whole_tile_function
from cuvil.codegen.contraction.tiles import TileGrid, unravel
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I8,
    I32,
    KERNEL_TYPE,
    PTR,
    address,
    element_type,
    for_range,
    i64,
    load_invariant,
    repeat_guarded,
    set_target,
    vector,
)

_SHORT_SUM = 128  # steps; in longer ones storing and loading the sums is lost
_SHORT_EPILOGUE = 24  # instructions for a vector


def emit_contraction(
    module: ir.Module,
    name: str,
    spec: ContractionSpec,
    facts: TargetFacts,
    epilogue: Epilogue = identity,
) -> ir.Function:
    """Emits `i32 name(buffers, dims, begin, end, scratch)`, which computes tasks [begin, end).

    Tasks number `task_count`; scratch must hold `scratch_bytes`. Any extent may be zero (k: the
    epilogue sees zeros). Micro-kernels are shared with the module's other contractions.
    """
    function = ir.Function(module, KERNEL_TYPE, name)
    set_target(function, facts)
    _Kernel(function, spec, facts, epilogue).emit()
    return function


@dataclass(frozen=True)
class _Block:
    """One task and one block of its k: offsets into A and B, tiles, panels.

    nth: number of the k block; last: this is the last one; steps: of the outermost k dim.
    """

    batch: list[Index]
    a: Index
    b: Index
    tiles: tuple[Index, Index]
    panels: tuple[Index, Index]
    nth: Index
    last: ir.Value | bool
    steps: Index


@dataclass(frozen=True)
class _Column:
    """One column of tiles. first: of C's columns; local: number among the task's columns.

    count: columns that exist, where fewer than the tile has.
    """

    first: Index
    b: ir.Value
    local: Index
    vectors: int
    count: Index | None


class _Kernel:
    def __init__(
        self, function: ir.Function, spec: ContractionSpec, facts: TargetFacts, epilogue: Epilogue
    ) -> None:
        self.function, self.spec, self.facts, self.epilogue = function, spec, facts, epilogue
        self.buffers, self.dims, self.begin, self.end, self.scratch = function.args
        self.scratch.add_attribute("noalias")
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.at = Arith(self.b, self.dims)
        self.schedule: Schedule = make_schedule(spec, facts)
        self.element = element_type(spec.dtype)
        self.stored = element_type("f16" if spec.halves else spec.dtype)
        self.passes = spec.panel // self.schedule.width  # columns of tiles in a panel
        self.shifted = is_shifted(spec.dtype, self.schedule.lanes, facts)
        self.following = following(spec, self.schedule, facts)
        self.whole = self._is_whole()

    def emit(self) -> None:
        """The whole kernel: what is invariant first, then the loop over tasks."""
        at, spec, schedule = self.at, self.spec, self.schedule
        self.cut = make_cut(spec, schedule, self.facts, at)
        self.grid = TileGrid(at, spec, schedule, self.cut.row_tiles)
        self.k = [at.size(dim.extent) for dim in schedule.k]
        self.k_strides = [at.size(dim.a_stride) for dim in schedule.k]
        self.k_total = at.product(self.k)
        a = load_invariant(self.b, self.buffers, spec.a, PTR)
        self.rows = RowsOfA(at, spec, schedule, self.facts, a, self.scratch)
        self.panels = load_invariant(self.b, self.buffers, spec.b, PTR)
        self.sums = address(self.b, self.scratch, i64(pack_bytes(spec, schedule)), I8)
        # Behind the sums: what each column of tiles starts from, or a copy of it; never both.
        self.starts = address(self.b, self.sums, i64(sums_bytes(spec, schedule)), I8)
        with for_range(self.b, self.begin, self.end) as task:
            self._task(task)
        self.b.ret(ir.Constant(I32, 0))

    def _is_whole(self) -> bool:
        """Whether tiles are finished while their sums are in registers: short sums of vectors,
        after which there is little to do, in tiles of few sizes. Other code is to be small."""
        spec, schedule = self.spec, self.schedule
        steps = static_product([dim.extent for dim in schedule.k])
        rows = static_product([dim.extent for dim in spec.rows])
        plain = not (self.shifted or schedule.k_block or schedule.wide_steps or schedule.matrix)
        grouped = not self.facts.dots and gcd(schedule.vectors, self.facts.vector_group) > 1
        if steps is None or rows is None or steps > _SHORT_SUM or schedule.lanes == 1:
            return False
        if not plain or grouped:
            return False
        kind = vector(sum_type(spec.dtype), schedule.lanes)
        length = epilogue_length(self.epilogue, kind, len(spec.batch), len(spec.rows))
        return length <= _SHORT_EPILOGUE

    def _task(self, task: ir.Value) -> None:
        """Decodes a task and loops over its blocks of k."""
        at, cut, batch_dims = self.at, self.cut, self.spec.batch
        fastest = at.choose(cut.rows_first, cut.row_blocks, cut.panel_blocks)
        slower = at.choose(cut.rows_first, cut.panel_blocks, cut.row_blocks)
        nth_batch, slow, fast = unravel(at, task, [cut.batches, slower, fastest])
        row_block = at.choose(cut.rows_first, fast, slow)
        panel_block = at.choose(cut.rows_first, slow, fast)
        indices = unravel(at, nth_batch, [at.size(dim.extent) for dim in batch_dims])
        a = at.dot(indices, [at.size(dim.a_stride) for dim in batch_dims])
        b = at.dot(indices, [at.size(dim.b_stride) for dim in batch_dims])
        tiles = self._range(row_block, cut.task_tiles, cut.tiles)
        panels = self._range(panel_block, cut.task_panels, cut.panels)
        most = self.schedule.k_block
        if not most:
            return self._block(_Block(indices, a, b, tiles, panels, 0, True, self.k[0]))
        blocks = at.maximum(1, at.ceil_div(self.k[0], most))
        inner = at.product(self.k[1:])
        with for_range(self.b, i64(0), at.value(blocks)) as nth:
            k = at.mul(nth, most)
            in_a = at.add(a, at.mul(k, self.k_strides[0]))
            in_b = at.add(b, at.mul(k, at.mul(inner, self.spec.panel)))
            last = self.b.icmp_signed("==", nth, at.value(at.sub(blocks, 1)))
            steps = at.minimum(most, at.sub(self.k[0], k))
            self._block(_Block(indices, in_a, in_b, tiles, panels, nth, last, steps))
        return None

    def _range(self, nth: Index, each: Index, total: Index) -> tuple[Index, Index]:
        first = self.at.mul(nth, each)
        return first, self.at.minimum(total, self.at.add(first, each))

    def _block(self, block: _Block) -> None:
        """Columns of full tiles, then the narrower last one."""
        at, schedule, passes = self.at, self.schedule, self.passes
        self.rows.prepare(self.grid, block.a, *block.tiles, block.steps)
        n = at.size(self.spec.n)
        full, tail = at.div(n, schedule.width), at.mod(n, schedule.width)
        first, last = (at.mul(panel, passes) for panel in block.panels)
        if not isinstance(full, int) or full:
            stop = at.minimum(last, full)
            with for_range(self.b, at.value(first), at.value(stop)) as number:
                self._tiles(block, self._column(block, number, first, schedule.vectors, None))
        if isinstance(tail, int) and tail == 0:
            return
        vectors = -(-tail // schedule.lanes) if isinstance(tail, int) else schedule.vectors
        mine = self.b.icmp_signed("<", at.value(full), at.value(last))
        some = self.b.icmp_signed(">", at.value(tail), i64(0))
        with self.b.if_then(self.b.and_(mine, some)):
            self._tiles(block, self._column(block, full, first, vectors, tail))

    def _column(
        self, block: _Block, number: Index, first: Index, vectors: int, count: Index | None
    ) -> _Column:
        at, width, panel = self.at, self.schedule.width, self.spec.panel
        whole = at.mul(at.mul(at.div(number, self.passes), self.k_total), panel)
        inside = at.mul(at.mod(number, self.passes), width)
        place = at.add(block.b, at.add(whole, inside))
        b = address(self.b, self.panels, at.value(place), self.stored)
        return _Column(at.mul(number, width), b, at.sub(number, first), vectors, count)

    def _tiles(self, block: _Block, column: _Column) -> None:
        """All row tiles of the task in one column of tiles."""
        at = self.at
        first, last = block.tiles
        total = at.sub(last, first)
        if self.shifted:
            self._if_first(block, lambda: self._make_starts(column))
        if self.schedule.wide_steps or (self.schedule.matrix and self.schedule.matrix.steps):
            self._copy_columns(block, column)

        def tile(nth: ir.Value, indices: list[ir.Value]) -> list[ir.Value]:
            starts, sizes = self.grid.rows(indices)
            number = at.add(at.mul(column.local, total), nth) if self.schedule.k_block else 0
            slot = self.schedule.tile_rows * self.schedule.width
            sums = self._element(self.sums, at.mul(number, slot))
            if self.shifted:
                shape = (self.schedule.tile_rows, column.vectors, self.schedule.lanes)
                self._if_first(block, lambda: fill_tile(self.b, sums, self.starts, shape))
            a = self.rows.pointer(block.a, starts, nth)
            if self.whole:
                self._by_size(sizes, lambda s: self._whole(block, column, a, starts, s, nth))
                return self.grid.following(indices)
            self._by_size(sizes, lambda s: self._sum(block, column, a, sums, s, nth))
            if block.last is True:
                self._finish(block, column, sums, starts, sizes)
            else:
                with self.b.if_then(block.last):
                    self._finish(block, column, sums, starts, sizes)
            return self.grid.following(indices)

        starting = [at.value(index) for index in self.grid.indices(first)]
        repeat_guarded(self.b, at.value(total), starting, tile)

    def _if_first(self, block: _Block, emit: Callable[[], None]) -> None:
        """Code for the first block of k."""
        if isinstance(block.nth, int):
            return emit()
        with self.b.if_then(self.b.icmp_signed("==", block.nth, i64(0))):
            emit()
        return None

    def _make_starts(self, column: _Column) -> None:
        lanes, module = self.schedule.lanes, self.function.module
        sum_up = starts_function(module, self.facts, column.vectors, lanes, self.spec.panel)
        self.b.call(sum_up, [column.b, self.at.value(self.k_total), self.starts])

    def _copy_columns(self, block: _Block, column: _Column) -> None:
        """Puts pairs of B's columns together, or widens them, but for a single row."""
        at, module = self.at, self.function.module
        make = widen_columns if self.schedule.wide_steps else pair_columns
        copy = make(module, self.facts, column.vectors, self.spec.panel)
        steps = at.value(at.product([block.steps, *self.k[1:]]))
        rows = at.product([at.size(dim.extent) for dim in self.spec.rows])
        with self.b.if_then(self.b.icmp_signed(">", at.value(rows), i64(1))):
            self.b.call(copy, [column.b, steps, self.starts])

    def _what_follows(self, block: _Block, column: _Column, nth: ir.Value) -> ir.Value:
        """The part of what follows in B that the nth tile asks for."""
        at, steps = self.at, self.at.product([block.steps, *self.k[1:]])
        part = at.mul(nth, at.mul(steps, self.following))
        place = at.add(at.mul(steps, self.spec.panel), part)
        return address(self.b, column.b, at.value(place), self.stored)

    def _sum(
        self,
        block: _Block,
        column: _Column,
        a: ir.Value,
        sums: ir.Value,
        size: tuple[int, int],
        nth: ir.Value,
    ) -> None:
        """Calls the micro-kernel for the tile's size."""
        shape = self._shape(size, column)
        copied = self.spec.halves and not shape.halves
        copied = copied or bool(shape.matrix and shape.matrix.columns)
        matrix = self.starts if copied else column.b
        kernel = micro_kernel(self.function.module, self.facts, shape)
        resume = i64(1) if self.shifted else self.at.value(block.nth)
        loops = self._loops(block, column, shape, nth)
        self.b.call(kernel, [a, matrix, sums, resume, *loops])

    def _whole(
        self,
        block: _Block,
        column: _Column,
        a: ir.Value,
        starts: list[Index],
        size: tuple[int, int],
        nth: ir.Value,
    ) -> None:
        """Calls the function that sums and finishes a tile of this size."""
        at, shape, count = self.at, self._shape(size, column), column.count
        compute = whole_tile_function(
            self.function, self.spec, self.facts, self.epilogue, shape, count is not None
        )
        place = [column.first, 0 if count is None else count, *starts, *block.batch]
        loops = self._loops(block, column, shape, nth)
        arguments = [*map(at.value, place), a, column.b, *loops]
        self.b.call(compute, [self.buffers, self.dims, *arguments])

    def _shape(self, size: tuple[int, int], column: _Column) -> MicroKernel:
        share = self.following if column.vectors == self.schedule.vectors else 0
        return tile_shape(self.spec, self.schedule, self.facts, size, column.vectors, share)

    def _loops(
        self, block: _Block, column: _Column, shape: MicroKernel, nth: ir.Value
    ) -> list[ir.Value]:
        """What a micro-kernel is told of rows, of the sum, and of what to ask for."""
        extents = [block.steps, *self.k[1:]]
        loops = [x for pair in zip(extents, self.k_strides, strict=True) for x in pair]
        asked = [self._what_follows(block, column, nth)] if shape.following else []
        return [*self.rows.strides, *map(self.at.value, loops), *asked]

    def _by_size(self, sizes: list[Index], call: Callable[[tuple[int, int]], None]) -> None:
        """Code for each size that a tile can have."""
        at, shapes = self.at, self.grid.shapes()
        if len(shapes) == 1:
            return call(shapes[0])
        base = 1 + self.schedule.tile_rows
        key = at.add(at.mul(sizes[-2] if len(sizes) > 1 else 1, base), sizes[-1])
        done, other = self.b.append_basic_block("summed"), self.b.append_basic_block("no.size")
        switch = self.b.switch(at.value(key), other)
        for outer, inner in shapes:
            switch.add_case(i64(outer * base + inner), self.b.append_basic_block("size"))
            self.b.position_at_end(self.function.blocks[-1])
            call((outer, inner))
            self.b.branch(done)
        self.b.position_at_end(other)
        self.b.unreachable()
        self.b.position_at_end(done)
        return None

    def _finish(
        self,
        block: _Block,
        column: _Column,
        sums: ir.Value,
        starts: list[Index],
        sizes: list[Index],
    ) -> None:
        """Calls the epilogue over the tile."""
        apply = tile_epilogue_function(
            self.function,
            self.spec,
            self.facts,
            self.epilogue,
            self.schedule.lanes,
            column.vectors,
            column.count is not None,
        )
        outer = sizes[-2] if len(sizes) > 1 else 1
        count = 0 if column.count is None else column.count
        scalars = [outer, sizes[-1], column.first, count, *starts, *block.batch]
        values = [self.at.value(x) for x in scalars]
        self.b.call(apply, [self.buffers, self.dims, sums, *values])

    def _element(self, base: ir.Value, offset: Index) -> ir.Value:
        return address(self.b, base, self.at.value(offset), self.element)
