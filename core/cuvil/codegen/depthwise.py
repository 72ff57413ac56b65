"""Depthwise convolutions, channels last, as LLVM kernels with the contraction's epilogue protocol.

C[batch, y, x, c] = epilogue(sum over i, j of A[batch, y*sy + i*dy, x*sx + j*dx, c] * B[i, j, c]).
Vectors run over channels; a tile of several output columns shares its loads of A. The loops are
channel block, output row, tile: so the weights stay in registers and KH rows of A in L1.
"""

from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index, Size
from cuvil.codegen.contraction.epilogue import (
    Epilogue,
    EpilogueScope,
    apply_epilogue,
    epilogue_length,
    identity,
)
from cuvil.codegen.contraction.tasks import TASK_OPERATIONS, TASKS_WANTED, TaskCount
from cuvil.codegen.contraction.tiles import runs, unravel
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I32,
    KERNEL_TYPE,
    PTR,
    address,
    element_type,
    fma,
    for_range,
    i64,
    lane_mask,
    load,
    load_invariant,
    masked_load,
    repeat,
    set_invariant,
    set_target,
    stack_array,
    store,
    vector,
    zero,
)

_MEMORY_FACTOR = 3  # a multiply-add here costs about three of a contraction's: it is all loads
_LEAST_ROWS = 14  # of which one more in a half of them does not matter
_MOST_COLUMNS = 16
_COLUMNS_OF_FEW_TAPS = 8  # more of them gain nothing: few taps wait for loads of A, not for sums
_MOST_UNROLLED_TAPS = 25
_FEW_TAPS = 9
_LONG_EPILOGUE = 16  # instructions; a longer one is a loop over the tile


@dataclass(frozen=True)
class DepthwiseBatch:
    """One batch dim; strides count elements."""

    extent: Size
    a_stride: Size
    c_stride: Size


@dataclass(frozen=True)
class DepthwiseSpec:
    """One depthwise convolution; A is padded already, and every stride counts elements.

    out: output rows and columns. kernel, stride, dilation: (vertical, horizontal).
    a_row, a_pixel: from a row or a pixel of A to the next; c_row, c_pixel: the same of C.
    B is dense [KH, KW, channels]. a, b, c: indices into the kernel's `buffers`; C does not
    overlap A. columns: of a tile, a power of two; 0: as many as registers allow.
    """

    batch: tuple[DepthwiseBatch, ...]
    out: tuple[Size, Size]
    channels: Size
    kernel: tuple[int, int]
    a_row: Size
    a_pixel: Size
    c_row: Size
    c_pixel: Size
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    dtype: str = "f32"
    a: int = 0
    b: int = 1
    c: int = 2
    columns: int = 0


def alternatives(spec: DepthwiseSpec, facts: TargetFacts) -> list[int]:
    """Other `columns` to measure, those that costs choose first."""
    usual = _most_columns(spec, facts)
    return [usual, *(n for n in (1, 2, 4, 8) if n < usual or n == 2 * usual <= _MOST_COLUMNS)]


@TaskCount
def task_count(spec: DepthwiseSpec, facts: TargetFacts, at: Arith) -> Index:
    """Tasks of the kernel, which needs no scratch."""
    return _cut(spec, facts, at).tasks


def emit_depthwise(
    module: ir.Module,
    name: str,
    spec: DepthwiseSpec,
    facts: TargetFacts,
    epilogue: Epilogue = identity,
) -> ir.Function:
    """Emits `i32 name(buffers, dims, begin, end, scratch)`, which computes tasks [begin, end).

    The epilogue sees rows = [y, x] and col = channel. Any extent may be zero.
    """
    function = ir.Function(module, KERNEL_TYPE, name)
    set_target(function, facts)
    _Kernel(function, spec, facts, epilogue).emit()
    return function


@dataclass(frozen=True)
class _Cut:
    """The task space: (batch, row block, channel group), the group fastest: half of the tasks is
    half of the rows, as in the kernels before and behind. Parts differ by one row or block at most,
    and are an even number where they can, so that two threads get the same."""

    batches: Index
    blocks: Index  # of channels, one vector each
    row_blocks: Index
    groups: Index
    tasks: Index


def _cut(spec: DepthwiseSpec, facts: TargetFacts, at: Arith) -> _Cut:
    rows, columns = (at.size(extent) for extent in spec.out)
    lanes = facts.lanes(spec.dtype)
    blocks = at.ceil_div(at.size(spec.channels), lanes)
    batches = at.product([at.size(dim.extent) for dim in spec.batch])
    taps = spec.kernel[0] * spec.kernel[1]
    cost = at.maximum(1, at.mul(columns, lanes * taps * 2 * _MEMORY_FACTOR))
    units = at.mul(batches, at.mul(rows, blocks))
    wanted = at.maximum(at.div(TASK_OPERATIONS, cost), at.div(units, TASKS_WANTED))
    wanted = at.maximum(1, wanted)
    several = at.less(wanted, units)
    row_blocks = at.ceil_div(rows, at.minimum(rows, wanted))
    halves = at.mul(several, at.less(_LEAST_ROWS - 1, rows))
    row_blocks = at.add(row_blocks, at.mul(halves, at.mod(row_blocks, 2)))
    task_rows = at.maximum(1, at.ceil_div(rows, row_blocks))
    groups = at.ceil_div(blocks, at.maximum(1, at.minimum(blocks, at.div(wanted, task_rows))))
    odd = at.mod(at.mul(batches, at.mul(row_blocks, groups)), 2)
    groups = at.add(groups, at.mul(at.mul(several, odd), at.less(groups, blocks)))
    tasks = at.mul(batches, at.mul(row_blocks, groups))
    return _Cut(batches, blocks, row_blocks, groups, tasks)


@dataclass(frozen=True)
class _Place:
    """Where a tile of output columns begins."""

    batch: list[Index]
    a: Index  # offset of the batch in A
    c: Index
    y: Index
    x: Index
    channel: Index
    mask: ir.Value | None


class _Kernel:
    def __init__(
        self, function: ir.Function, spec: DepthwiseSpec, facts: TargetFacts, epilogue: Epilogue
    ) -> None:
        self.spec, self.facts, self.epilogue = spec, facts, epilogue
        self.buffers, self.dims, self.begin, self.end, _ = function.args
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.at = Arith(self.b, self.dims)
        self.lanes = facts.lanes(spec.dtype)
        self.element = element_type(spec.dtype)
        self.kind = vector(self.element, self.lanes)
        self.columns = _most_columns(spec, facts)
        self.unrolled = _is_unrolled(spec, facts, self.columns)
        length = epilogue_length(epilogue, self.kind, len(spec.batch), len(spec.out))
        self.looped = length > _LONG_EPILOGUE

    def emit(self) -> None:
        """The whole kernel: what is invariant first, then the loop over tasks."""
        at, spec, b = self.at, self.spec, self.b
        self.cut = _cut(spec, self.facts, at)
        self.a = load_invariant(b, self.buffers, spec.a, PTR)
        self.weights = load_invariant(b, self.buffers, spec.b, PTR)
        self.rows, self.width = (at.size(extent) for extent in spec.out)
        self.channels = at.size(spec.channels)
        self.a_row, self.a_pixel = at.size(spec.a_row), at.size(spec.a_pixel)
        self.c_row, self.c_pixel = at.size(spec.c_row), at.size(spec.c_pixel)
        if self.looped:
            self.tile = stack_array(b, self.kind, self.columns)
        with for_range(b, self.begin, self.end) as task:
            self._task(task)
        b.ret(ir.Constant(I32, 0))

    def _task(self, task: ir.Value) -> None:
        at, cut, dims = self.at, self.cut, self.spec.batch
        batch, row_block, group = unravel(at, task, [cut.batches, cut.row_blocks, cut.groups])
        indices = unravel(at, batch, [at.size(dim.extent) for dim in dims])
        a = at.dot(indices, [at.size(dim.a_stride) for dim in dims])
        c = at.dot(indices, [at.size(dim.c_stride) for dim in dims])
        first, last = self._part(group, cut.groups, cut.blocks)
        whole = at.div(self.channels, self.lanes)
        rows = self._part(row_block, cut.row_blocks, self.rows)
        if not isinstance(whole, int) or whole:
            stop = at.minimum(last, whole)
            with for_range(self.b, at.value(first), at.value(stop)) as block:
                channel = at.mul(block, self.lanes)
                self._rows(rows, _Place(indices, a, c, 0, 0, channel, None))
        tail = at.mod(self.channels, self.lanes)
        if isinstance(tail, int) and tail == 0:
            return
        mine = self.b.icmp_signed("<", at.value(whole), at.value(last))
        with self.b.if_then(mine):
            mask = lane_mask(self.b, self.lanes, at.value(tail))
            channel = at.mul(whole, self.lanes)
            self._rows(rows, _Place(indices, a, c, 0, 0, channel, mask))

    def _part(self, nth: Index, parts: Index, total: Index) -> tuple[Index, Index]:
        at = self.at
        first = at.div(at.mul(nth, total), parts)
        return first, at.div(at.mul(at.add(nth, 1), total), parts)

    def _rows(self, rows: tuple[Index, Index], place: _Place) -> None:
        """All output rows of the task for one vector of channels."""
        at = self.at
        with for_range(self.b, at.value(rows[0]), at.value(rows[1])) as y:
            for first, count, columns in runs(self.at, self.width, self.columns):
                with for_range(self.b, i64(0), at.value(count)) as nth:
                    x = at.add(first, at.mul(nth, columns))
                    at_tile = _Place(place.batch, place.a, place.c, y, x, place.channel, place.mask)
                    self._tile(at_tile, columns)

    def _tile(self, place: _Place, columns: int) -> None:
        """`columns` outputs of one row and one vector of channels."""
        at, spec = self.at, self.spec
        inside = at.dot(
            [place.y, place.x],
            [at.mul(self.a_row, spec.stride[0]), at.mul(self.a_pixel, spec.stride[1])],
        )
        a = self._element(self.a, at.add(place.a, at.add(inside, place.channel)))
        weights = self._element(self.weights, place.channel)
        sums: list[ir.Value] = [zero(self.kind)] * columns
        if self.unrolled:
            for i in range(spec.kernel[0]):
                sums = self._kernel_row(a, weights, i, sums, place.mask)
        elif spec.kernel[0]:
            rows = i64(spec.kernel[0])
            sums = repeat(
                self.b,
                rows,
                sums,
                lambda i, values: self._kernel_row(a, weights, i, values, place.mask),
            )
        self._finish(place, sums)

    def _kernel_row(
        self,
        a: ir.Value,
        weights: ir.Value,
        i: Index,
        sums: list[ir.Value],
        mask: ir.Value | None,
    ) -> list[ir.Value]:
        """Adds one row of the kernel; each vector of A is loaded once for all its uses."""
        at, spec = self.at, self.spec
        row = at.mul(at.mul(i, spec.dilation[0]), self.a_row)
        first = at.mul(i, spec.kernel[1])
        taps = [
            self._read(weights, at.mul(at.add(first, j), self.channels), mask)
            for j in range(spec.kernel[1])
        ]
        inputs: dict[int, ir.Value] = {}
        out = list(sums)
        for x in range(len(sums)):
            for j, tap in enumerate(taps):
                pixel = x * spec.stride[1] + j * spec.dilation[1]
                if pixel not in inputs:
                    inputs[pixel] = self._read(a, at.add(row, at.mul(pixel, self.a_pixel)), mask)
                out[x] = fma(self.b, inputs[pixel], tap, out[x], self.facts.fma)
        return out

    def _finish(self, place: _Place, sums: list[ir.Value]) -> None:
        """Applies the epilogue to each column: unrolled, or as a loop when it is long."""
        if not self.looped:
            for x, value in enumerate(sums):
                self._output(place, x, value)
            return
        for x, value in enumerate(sums):
            store(self.b, value, self.tile, i64(x * self.lanes))
        with for_range(self.b, i64(0), i64(len(sums))) as x:
            start = self.b.mul(x, i64(self.lanes))
            self._output(place, x, load(self.b, self.tile, start, self.kind))

    def _output(self, place: _Place, x: Index, value: ir.Value) -> None:
        at = self.at
        column = at.add(place.x, x)
        inside = at.dot([place.y, column], [self.c_row, self.c_pixel])
        offset = at.add(place.c, at.add(inside, place.channel))
        scope = EpilogueScope(
            self.b,
            self.buffers,
            self.dims,
            self.lanes,
            [at.value(index) for index in place.batch],
            [at.value(place.y), at.value(column)],
            at.value(place.channel),
            at.value(offset),
            place.mask,
        )
        apply_epilogue(scope, self.epilogue, value, self.spec.c)

    def _read(self, base: ir.Value, offset: Index, mask: ir.Value | None) -> ir.Value:
        """A vector that nothing writes meanwhile: LLVM may keep weights in registers."""
        where = self.at.value(offset)
        if mask is None:
            return set_invariant(load(self.b, base, where, self.kind))
        return set_invariant(masked_load(self.b, base, where, self.kind, mask))

    def _element(self, base: ir.Value, offset: Index) -> ir.Value:
        return address(self.b, base, self.at.value(offset), self.element)


def _is_unrolled(spec: DepthwiseSpec, facts: TargetFacts, columns: int) -> bool:
    """Whether the kernel's rows are written out: few taps, or taps that all stay in registers."""
    taps = spec.kernel[0] * spec.kernel[1]
    fits = taps + columns + 2 <= facts.vector_registers
    return taps <= (_MOST_UNROLLED_TAPS if fits else _FEW_TAPS)


def _most_columns(spec: DepthwiseSpec, facts: TargetFacts) -> int:
    """Output columns of a tile: a power of two, so that halves of it cover any remainder."""
    if spec.columns:
        return spec.columns
    room = facts.vector_registers - spec.kernel[1] - 2
    few = spec.kernel[0] * spec.kernel[1] <= _FEW_TAPS
    columns = _COLUMNS_OF_FEW_TAPS if few else _MOST_COLUMNS
    while columns > 1 and columns > room:
        columns //= 2
    return columns
