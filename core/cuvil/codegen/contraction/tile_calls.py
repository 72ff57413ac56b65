"""Calls of the functions that compute a tile: its sums, and what becomes of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index, static_product
from cuvil.codegen.contraction.cut import following
from cuvil.codegen.contraction.dot import is_shifted, sum_type
from cuvil.codegen.contraction.epilogue import Epilogue, epilogue_length
from cuvil.codegen.contraction.micro_shape import MicroKernel
from cuvil.codegen.contraction.microkernel import micro_kernel
from cuvil.codegen.contraction.schedule import Schedule, tile_shape
from cuvil.codegen.contraction.spec import ContractionSpec
from cuvil.codegen.contraction.tile_epilogue import tile_epilogue_function, whole_tile_function
from cuvil.codegen.contraction.tiles import TileGrid
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import address, element_type, i64, vector

_SHORT_SUM = 256  # steps; in longer ones the time to store and load the sums is lost
_SHORT_EPILOGUE = 24  # instructions for a vector
_USUAL_SIZES = 2


@dataclass(frozen=True)
class Block:
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
class Column:
    """One column of tiles. first: of C's columns; local: number among the task's columns.

    count: columns that exist, where fewer than the tile has.
    """

    first: Index
    b: ir.Value
    local: Index
    vectors: int
    count: Index | None


@dataclass(frozen=True)
class Tile:
    """One tile of a column. nth: among the task's; a: its first row; sums: its place in scratch;
    starts, sizes: first row and number of rows, per row dim."""

    nth: ir.Value
    a: ir.Value
    sums: ir.Value
    starts: list[Index]
    sizes: list[Index]


class TileCalls:
    """strides: of the rows as micro-kernels take them; starts: where copies of B's columns lie."""

    def __init__(
        self,
        function: ir.Function,
        at: Arith,
        spec: ContractionSpec,
        schedule: Schedule,
        facts: TargetFacts,
        epilogue: Epilogue,
        grid: TileGrid,
        strides: Sequence[ir.Value],
        starts: ir.Value,
    ) -> None:
        self.function, self.at, self.b = function, at, at.b
        self.spec, self.schedule, self.facts, self.epilogue = spec, schedule, facts, epilogue
        self.grid, self.strides, self.starts = grid, strides, starts
        self.shifted = is_shifted(spec.dtype, schedule.lanes, facts)
        self.following = following(spec, schedule, facts)
        self.whole = self._is_whole()
        self.usual = sorted(grid.shapes(), key=prod)[-_USUAL_SIZES:]

    def compute(self, block: Block, column: Column, tile: Tile) -> None:
        """The tile's sums over a block of k; after the last one, what is stored."""
        if self.whole:
            return self._by_size(tile, lambda size: self._short(block, column, tile, size))
        self._by_size(tile, lambda size: self._sum(block, column, tile, size))
        if block.last is True:
            return self._finish(block, column, tile)
        with self.b.if_then(block.last):
            self._finish(block, column, tile)
        return None

    def _is_whole(self) -> bool:
        """Whether tiles of the usual sizes are finished while their sums are in registers: short
        sums, after which there is little to do. Cpus of 32 bits lack registers for the addresses of
        A and of C, and their code is to be small."""
        spec, schedule = self.spec, self.schedule
        steps = static_product([dim.extent for dim in schedule.k])
        plain = not (self.shifted or schedule.k_block or schedule.wide_steps or schedule.matrix)
        grouped = not self.facts.dots and gcd(schedule.vectors, self.facts.vector_group) > 1
        small = self.facts.pointer_bits < 64
        if small or steps is None or steps > _SHORT_SUM or not plain or grouped:
            return False
        kind = vector(sum_type(spec.dtype), schedule.lanes)
        length = epilogue_length(self.epilogue, kind, len(spec.batch), len(spec.rows))
        return length <= _SHORT_EPILOGUE

    def _by_size(self, tile: Tile, call: Callable[[tuple[int, int]], None]) -> None:
        """Code for each size that a tile can have."""
        at, shapes, sizes = self.at, self.grid.shapes(), tile.sizes
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

    def _sum(self, block: Block, column: Column, tile: Tile, size: tuple[int, int]) -> None:
        """Calls the micro-kernel for this size."""
        shape = self._shape(size, column)
        copied = self.spec.halves and not shape.halves
        copied = copied or bool(shape.matrix and shape.matrix.columns)
        matrix = self.starts if copied else column.b
        kernel = micro_kernel(self.function.module, self.facts, shape)
        resume = i64(1) if self.shifted else self.at.value(block.nth)
        loops = self._loops(block, column, tile, shape)
        self.b.call(kernel, [tile.a, matrix, tile.sums, resume, *loops])

    def _short(self, block: Block, column: Column, tile: Tile, size: tuple[int, int]) -> None:
        """A tile in one go, if many are of this size: where rows are symbolic, most have as many
        as fit or one less."""
        if size in self.usual:
            return self._whole(block, column, tile, size)
        self._sum(block, column, tile, size)
        return self._finish(block, column, tile)

    def _whole(self, block: Block, column: Column, tile: Tile, size: tuple[int, int]) -> None:
        """Calls the function that sums and finishes a tile of this size."""
        shape, masked = self._shape(size, column), column.count is not None
        compute = whole_tile_function(
            self.function, self.spec, self.facts, self.epilogue, shape, masked
        )
        place = [column.first, column.count or 0, *tile.starts, *block.batch]
        operands = [tile.a, column.b, *self._loops(block, column, tile, shape)]
        buffers, dims, *_ = self.function.args
        self.b.call(compute, [buffers, dims, *map(self.at.value, place), *operands])

    def _finish(self, block: Block, column: Column, tile: Tile) -> None:
        """Calls the epilogue over the tile."""
        lanes, masked = self.schedule.lanes, column.count is not None
        apply = tile_epilogue_function(
            self.function, self.spec, self.facts, self.epilogue, lanes, column.vectors, masked
        )
        outer = tile.sizes[-2] if len(tile.sizes) > 1 else 1
        size = [outer, tile.sizes[-1], column.first, column.count or 0]
        scalars = [*size, *tile.starts, *block.batch]
        buffers, dims, *_ = self.function.args
        self.b.call(apply, [buffers, dims, tile.sums, *map(self.at.value, scalars)])

    def _shape(self, size: tuple[int, int], column: Column) -> MicroKernel:
        share = self.following if column.vectors == self.schedule.vectors else 0
        return tile_shape(self.spec, self.schedule, self.facts, size, column.vectors, share)

    def _loops(
        self, block: Block, column: Column, tile: Tile, shape: MicroKernel
    ) -> list[ir.Value]:
        """What a micro-kernel is told of rows, of the sum, and of what to ask for."""
        at, (outermost, *inner) = self.at, self.schedule.k
        extents = [block.steps, *(at.size(dim.extent) for dim in inner)]
        strides = [at.size(dim.a_stride) for dim in (outermost, *inner)]
        loops = [x for pair in zip(extents, strides, strict=True) for x in pair]
        asked = [self._what_follows(column, tile, at.product(extents))] if shape.following else []
        return [*self.strides, *map(at.value, loops), *asked]

    def _what_follows(self, column: Column, tile: Tile, steps: Index) -> ir.Value:
        """The part of what follows in B that the tile asks for."""
        at = self.at
        part = at.mul(tile.nth, at.mul(steps, self.following))
        place = at.add(at.mul(steps, self.spec.panel), part)
        return address(self.b, column.b, at.value(place), element_type(self.spec.stored))
