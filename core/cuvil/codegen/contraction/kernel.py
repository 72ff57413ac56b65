"""The contraction kernel: tasks, blocks and tiles around the micro-kernels."""

from collections.abc import Callable

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.cut import make_cut
from cuvil.codegen.contraction.dot import is_shifted
from cuvil.codegen.contraction.epilogue import Epilogue, identity
from cuvil.codegen.contraction.half_steps import widen_columns
from cuvil.codegen.contraction.matrix_steps import pair_columns
from cuvil.codegen.contraction.rows_of_a import RowsOfA
from cuvil.codegen.contraction.schedule import (
    Schedule,
    make_schedule,
    pack_bytes,
    sums_bytes,
)
from cuvil.codegen.contraction.shifted import fill_tile, starts_function
from cuvil.codegen.contraction.spec import ContractionSpec
from cuvil.codegen.contraction.tile_calls import Block, Column, Tile, TileCalls
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
)


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
        self.stored = element_type(spec.stored)
        self.passes = spec.panel // self.schedule.width  # columns of tiles in a panel
        self.shifted = is_shifted(spec.dtype, self.schedule.lanes, facts)

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
        self.calls = TileCalls(
            self.function, at, spec, schedule, self.facts, self.epilogue, self.grid,
            self.rows.strides, self.starts,
        )  # fmt: skip
        with for_range(self.b, self.begin, self.end) as task:
            self._task(task)
        self.b.ret(ir.Constant(I32, 0))

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
            return self._block(Block(indices, a, b, tiles, panels, 0, True, self.k[0]))
        blocks = at.maximum(1, at.ceil_div(self.k[0], most))
        inner = at.product(self.k[1:])
        with for_range(self.b, i64(0), at.value(blocks)) as nth:
            k = at.mul(nth, most)
            in_a = at.add(a, at.mul(k, self.k_strides[0]))
            in_b = at.add(b, at.mul(k, at.mul(inner, self.spec.panel)))
            last = self.b.icmp_signed("==", nth, at.value(at.sub(blocks, 1)))
            steps = at.minimum(most, at.sub(self.k[0], k))
            self._block(Block(indices, in_a, in_b, tiles, panels, nth, last, steps))
        return None

    def _range(self, nth: Index, each: Index, total: Index) -> tuple[Index, Index]:
        first = self.at.mul(nth, each)
        return first, self.at.minimum(total, self.at.add(first, each))

    def _block(self, block: Block) -> None:
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
        self, block: Block, number: Index, first: Index, vectors: int, count: Index | None
    ) -> Column:
        at, width, panel = self.at, self.schedule.width, self.spec.panel
        whole = at.mul(at.mul(at.div(number, self.passes), self.k_total), panel)
        inside = at.mul(at.mod(number, self.passes), width)
        place = at.add(block.b, at.add(whole, inside))
        b = address(self.b, self.panels, at.value(place), self.stored)
        return Column(at.mul(number, width), b, at.sub(number, first), vectors, count)

    def _tiles(self, block: Block, column: Column) -> None:
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
            self.calls.compute(block, column, Tile(nth, a, sums, starts, sizes))
            return self.grid.following(indices)

        starting = [at.value(index) for index in self.grid.indices(first)]
        repeat_guarded(self.b, at.value(total), starting, tile)

    def _if_first(self, block: Block, emit: Callable[[], None]) -> None:
        """Code for the first block of k."""
        if isinstance(block.nth, int):
            return emit()
        with self.b.if_then(self.b.icmp_signed("==", block.nth, i64(0))):
            emit()
        return None

    def _make_starts(self, column: Column) -> None:
        lanes, module = self.schedule.lanes, self.function.module
        sum_up = starts_function(module, self.facts, column.vectors, lanes, self.spec.panel)
        self.b.call(sum_up, [column.b, self.at.value(self.k_total), self.starts])

    def _copy_columns(self, block: Block, column: Column) -> None:
        """Puts pairs of B's columns together, or widens them, but for a single row."""
        at, module = self.at, self.function.module
        make = widen_columns if self.schedule.wide_steps else pair_columns
        copy = make(module, self.facts, column.vectors, self.spec.panel)
        steps = at.value(at.product([block.steps, *self.k[1:]]))
        rows = at.product([at.size(dim.extent) for dim in self.spec.rows])
        with self.b.if_then(self.b.icmp_signed(">", at.value(rows), i64(1))):
            self.b.call(copy, [column.b, steps, self.starts])

    def _element(self, base: ir.Value, offset: Index) -> ir.Value:
        return address(self.b, base, self.at.value(offset), self.element)
