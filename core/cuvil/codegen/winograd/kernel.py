"""The Winograd kernel: tasks; of each the transformed tiles, then columns of products."""

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.epilogue import Epilogue, identity
from cuvil.codegen.contraction.microkernel import micro_kernel
from cuvil.codegen.contraction.schedule import tile_shape
from cuvil.codegen.contraction.spec import ContractionSpec, RowDim
from cuvil.codegen.contraction.tile_epilogue import tile_epilogue_function
from cuvil.codegen.contraction.tiles import runs, unravel
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    F32,
    I32,
    I64,
    KERNEL_TYPE,
    PTR,
    address,
    for_range,
    i64,
    load_invariant,
    set_target,
)
from cuvil.codegen.winograd.passes import copy_pass, image_pass, result_pass
from cuvil.codegen.winograd.schedule import inner, make_cut, places, register_tile
from cuvil.codegen.winograd.spec import WinogradSpec


def emit_winograd(
    module: ir.Module,
    name: str,
    spec: WinogradSpec,
    facts: TargetFacts,
    epilogue: Epilogue = identity,
) -> ir.Function:
    """Emits `i32 name(buffers, dims, begin, end, scratch)`, which computes tasks [begin, end).

    Tasks number `task_count`; scratch must hold `scratch_bytes`. The epilogue sees three rows: the
    image and the pixel's y and x.
    """
    function = ir.Function(module, KERNEL_TYPE, name)
    set_target(function, facts)
    _Kernel(function, spec, facts, epilogue).emit()
    return function


class _Kernel:
    def __init__(
        self, function: ir.Function, spec: WinogradSpec, facts: TargetFacts, epilogue: Epilogue
    ) -> None:
        self.function, self.spec, self.facts, self.epilogue = function, spec, facts, epilogue
        self.module = function.module
        self.buffers, self.dims, self.begin, self.end, self.scratch = function.args
        self.scratch.add_attribute("noalias")
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.at = Arith(self.b, self.dims)
        self.places, self.schedule = places(spec, facts), register_tile(spec, facts)

    def emit(self) -> None:
        """What is invariant, then the loop over tasks."""
        at, spec, image = self.at, self.spec, self.spec.image
        self.cut = make_cut(spec, self.facts, at)
        self.image, self.taps = (
            load_invariant(self.b, self.buffers, buffer, PTR) for buffer in (spec.a, spec.b)
        )
        self.row, self.pixel = at.value(at.size(image.row)), at.value(at.size(image.pixel))
        self.sums = self._floats(self.scratch, self.places.sums)
        self.patch = self._floats(self.scratch, self.places.patch)
        self.tiles = self._floats(self.scratch, self.places.tiles)
        if self.cut.panel_blocks > 1:  # nobody zeroed scratch for a launch without threads
            with self.b.if_then(self.b.icmp_signed("==", self.begin, i64(0))):
                self.b.store(i64(0), self.scratch)
        with for_range(self.b, self.begin, self.end) as task:
            self._task(task)
        self.b.ret(ir.Constant(I32, 0))

    def _task(self, task: ir.Value) -> None:
        at, cut = self.at, self.cut
        block, panels = unravel(at, task, [0, cut.panel_blocks])
        first = cut.start(at, block)
        count = at.sub(cut.start(at, at.add(block, 1)), first)
        self._transform_once(at.add(block, 1), first, count)
        if not isinstance(cut.total, int) or not isinstance(cut.row_blocks, int):
            return self._columns(first, count, panels)
        smallest, uneven = divmod(cut.total, max(1, cut.row_blocks))
        if not uneven:
            return self._columns(first, smallest, panels)
        larger = self.b.icmp_signed(">", at.value(count), i64(smallest))
        with self.b.if_else(larger) as (then, otherwise):
            with then:
                self._columns(first, smallest + 1, panels)
            with otherwise:
                self._columns(first, smallest, panels)
        return None

    def _transform_once(self, name: Index, first: Index, count: Index) -> None:
        """Transforms tiles, unless they are what this thread transformed last in the launch."""
        b = self.b
        if self.cut.panel_blocks == 1:
            return self._transform_all(first, count)
        here = b.icmp_signed("==", b.load(self.scratch, typ=I64), self.at.value(name))
        with b.if_then(b.not_(here)):
            self._transform_all(first, count)
            b.store(self.at.value(name), self.scratch)
        return None

    def _transform_all(self, first: Index, count: Index) -> None:
        with for_range(self.b, i64(0), self.at.value(count)) as nth:
            self._transform(nth, self.at.add(first, nth))

    def _columns(self, first: Index, count: Index, panels: Index) -> None:
        """Tiles [first, first + count) of the image for one block of panels."""
        at, cut, passes = self.at, self.cut, self.spec.panel // self.schedule.width
        start = at.mul(panels, cut.panels * passes)
        stop = at.add(start, cut.panels * passes)
        full, tail = divmod(self.spec.n, self.schedule.width)
        with for_range(self.b, at.value(start), at.value(at.minimum(stop, full))) as column:
            self._column(first, count, column, self.schedule.vectors, None)
        if tail:
            inside = self.b.and_(
                self.b.icmp_signed("<=", at.value(start), i64(full)),
                self.b.icmp_signed(">", at.value(stop), i64(full)),
            )
            with self.b.if_then(inside):
                vectors = -(-tail // self.schedule.lanes)
                self._column(first, count, i64(full), vectors, tail)

    def _transform(self, nth: ir.Value, tile: Index) -> None:
        """Transforms a tile of the image, through a copy where it reaches over the edge."""
        b, at, spec, image = self.b, self.at, self.spec, self.spec.image
        number, y, x = self._pixel(tile)
        offset = at.dot([number, y, x], [at.size(image.image), self.row, self.pixel])
        source = self._floats(self.image, offset)
        rows, columns = (at.sub(at.size(s), p) for s, p in ((image.rows, y), (image.columns, x)))
        run = image_pass(self.module, self.facts, spec, self.places.frequency)
        target = self._floats(self.tiles, at.mul(nth, self.places.row))
        high, wide = spec.sides
        inside = b.and_(
            b.icmp_signed(">=", at.value(rows), i64(high)),
            b.icmp_signed(">=", at.value(columns), i64(wide)),
        )
        with b.if_else(inside) as (then, otherwise):
            with then:
                b.call(run, [source, self.row, self.pixel, target])
            with otherwise:
                copy = copy_pass(self.module, self.facts, spec)
                sizes = [at.value(rows), at.value(columns)]
                b.call(copy, [source, self.row, self.pixel, *sizes, self.patch])
                steps = [i64(wide * spec.channels), i64(spec.channels)]
                b.call(run, [self.patch, *steps, target])

    def _column(
        self, first: Index, count: Index, column: ir.Value, vectors: int, tail: int | None
    ) -> None:
        """Products of all frequencies for one column of tiles, and back to pixels."""
        at, spec, width = self.at, self.spec, self.schedule.width
        passes = spec.panel // width
        panel = at.mul(at.div(column, passes), spec.frequencies * spec.channels * spec.panel)
        inside = at.add(panel, at.mul(at.mod(column, passes), width))
        taps = self._floats(self.taps, inside)
        with for_range(self.b, i64(0), i64(spec.frequencies)) as frequency:
            b = self._floats(taps, at.mul(frequency, spec.channels * spec.panel))
            a = self._floats(self.tiles, at.mul(frequency, self.places.frequency))
            self._products(a, b, self._frequency(frequency), count, vectors)
        lanes = self.schedule.lanes
        back = result_pass(
            self.module, self.facts, spec, (vectors, lanes), self.places.sum_frequency
        )
        with for_range(self.b, i64(0), at.value(count)) as nth:
            sums = self._floats(self.sums, at.mul(nth, vectors * lanes))
            self._finish(back, sums, at.add(first, nth), column, vectors, tail)

    def _products(
        self, a: ir.Value, b: ir.Value, sums: ir.Value, count: Index, vectors: int
    ) -> None:
        """One frequency: rows of tiles by one column of tiles of B."""
        at, schedule, row = self.at, self.schedule, self.places.row
        spec = inner(self.spec, schedule.tile_rows)
        for start, tiles, size in runs(at, count, schedule.tile_rows):
            shape = tile_shape(spec, schedule, self.facts, (1, size), vectors)
            kernel = micro_kernel(self.module, self.facts, shape)
            with for_range(self.b, i64(0), at.value(tiles)) as nth:
                tile = at.add(start, at.mul(nth, size))
                rows = self._floats(a, at.mul(tile, row))
                place = self._floats(sums, at.mul(tile, vectors * schedule.lanes))
                steps = [i64(0), i64(0), i64(row), i64(self.spec.channels), i64(1)]
                self.b.call(kernel, [rows, b, place, *steps])

    def _finish(
        self,
        back: ir.Function,
        sums: ir.Value,
        tile: Index,
        column: ir.Value,
        vectors: int,
        tail: int | None,
    ) -> None:
        """Back to pixels, and the epilogue on those of the tile that exist."""
        at, spec, result = self.at, self.spec, self.spec.result
        rows = tuple(
            RowDim(extent, 0, step)
            for extent, step in (
                (spec.image.count, result.image),
                (result.rows, result.row),
                (result.columns, result.pixel),
            )
        )
        shape = ContractionSpec((), rows, inner(spec, 1).k, spec.n, spec.panel, c=spec.c)
        apply = tile_epilogue_function(
            self.function, shape, self.facts, self.epilogue, self.schedule.lanes, vectors,
            tail is not None,
        )  # fmt: skip
        number, y, x = self._pixel(tile)
        height = at.minimum(spec.m[0], at.sub(at.size(result.rows), y))
        across = at.minimum(spec.m[1], at.sub(at.size(result.columns), x))
        self.b.call(back, [sums, at.value(across), self.patch])
        first = at.mul(column, self.schedule.width)
        scalars = [height, across, first, tail or 0, number, y, x]
        self.b.call(apply, [self.buffers, self.dims, self.patch, *map(at.value, scalars)])

    def _pixel(self, tile: Index) -> list[Index]:
        """The image of a tile, and its first pixel of the result."""
        number, down, across = unravel(self.at, tile, [0, self.cut.down, self.cut.across])
        m = self.spec.m
        return [number, self.at.mul(down, m[0]), self.at.mul(across, m[1])]

    def _frequency(self, frequency: ir.Value) -> ir.Value:
        return self._floats(self.sums, self.at.mul(frequency, self.places.sum_frequency))

    def _floats(self, base: ir.Value, offset: Index) -> ir.Value:
        return address(self.b, base, self.at.value(offset), F32)
