"""Few rows by a matrix that only the run knows: read where it lies, once, and copied nowhere.

C[batch, rows, n] = epilogue(sum over k of A[batch, rows, k] * B[batch, k, n]), where either columns
of B lie together, so that a step of the sum is a vector of them, or the terms of a column do: then
vectors run along the sum.
"""

from dataclasses import dataclass
from math import gcd, prod

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index, Size
from cuvil.codegen.contraction.columns import columns_function
from cuvil.codegen.contraction.epilogue import Epilogue, identity
from cuvil.codegen.contraction.micro_shape import MicroKernel
from cuvil.codegen.contraction.microkernel import micro_kernel
from cuvil.codegen.contraction.spec import ContractionSpec
from cuvil.codegen.contraction.tasks import TASKS_WANTED, TaskCount
from cuvil.codegen.contraction.tile_epilogue import tile_epilogue_function
from cuvil.codegen.contraction.tiles import unravel
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    F32,
    I32,
    KERNEL_TYPE,
    PTR,
    address,
    for_range,
    i64,
    load_invariant,
    set_target,
)

_TASK_BYTES = 128 * 1024  # of B: 6 us of a core's share of the memory's bandwidth
_MOST_VECTORS = 16
_MOST_COLUMNS = 8  # of one strip along the sum: streams of memory
_LATENCY_SUMS = 10  # independent sums that keep two FMA pipes of latency 4-5 busy
_CHUNK = 256  # terms of one chain of roundings, as in contractions
_AHEAD_BYTES = 8192  # of B
_BYTES = 4


@dataclass(frozen=True)
class FewRowsSpec:
    """One such kernel. product: as for a contraction of float32 with one k dim and rows of known
    extents in at most two dims; its panel is not used. k_step, n_step: elements of B from a step
    of the sum, and from a column, to the next: one of them is 1."""

    product: ContractionSpec
    k_step: Size
    n_step: Size

    @property
    def rows(self) -> tuple[int, int]:
        """Extents of the last two row dims."""
        *outer, inner = (dim.extent for dim in self.product.rows)
        assert len(outer) < 2 and all(isinstance(x, int) for x in (*outer, inner))
        return prod(outer), inner  # type: ignore[return-value, arg-type]

    @property
    def along_sum(self) -> bool:
        """Whether the terms of a column lie together."""
        return self.n_step != 1


@dataclass(frozen=True)
class _Strip:
    """Columns that are summed at once: vectors of so many lanes."""

    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        return self.vectors * self.lanes


@TaskCount
def task_count(spec: FewRowsSpec, facts: TargetFacts, at: Arith) -> Index:
    """Tasks of the kernel."""
    batches = at.product([at.size(dim.extent) for dim in spec.product.batch])
    return at.mul(batches, at.ceil_div(at.size(spec.product.n), _task_columns(spec, facts, at)))


def scratch_bytes(spec: FewRowsSpec, facts: TargetFacts) -> int:
    """Bytes of scratch: the sums of a strip."""
    return prod(spec.rows) * max(strip.width for strip in _strips(spec, facts)) * _BYTES


def emit_few_rows(
    module: ir.Module,
    name: str,
    spec: FewRowsSpec,
    facts: TargetFacts,
    epilogue: Epilogue = identity,
) -> ir.Function:
    """Emits `i32 name(buffers, dims, begin, end, scratch)`, which computes tasks [begin, end)."""
    function = ir.Function(module, KERNEL_TYPE, name)
    set_target(function, facts)
    _Kernel(function, spec, facts, epilogue).emit()
    return function


def _task_columns(spec: FewRowsSpec, facts: TargetFacts, at: Arith) -> Index:
    """Columns of a task, whole strips of the widest kind: enough of them to be worth a task, and
    more where there would be more tasks than anybody wants."""
    width = _strips(spec, facts)[0].width
    strips = at.ceil_div(at.size(spec.product.n), width)
    step = at.mul(at.maximum(1, at.size(spec.product.k[0].extent)), width * _BYTES)
    enough = at.maximum(at.div(_TASK_BYTES, step), at.div(strips, TASKS_WANTED))
    return at.mul(at.maximum(1, enough), width)


def _strips(spec: FewRowsSpec, facts: TargetFacts) -> list[_Strip]:
    """Kinds of strips, the widest first: for any count of columns, or for the known one."""
    n = spec.product.n
    kinds = _along_sum(spec, facts) if spec.along_sum else _along_columns(spec, facts)
    if not isinstance(n, int):
        return kinds
    found = []
    for strip in kinds:
        if n >= strip.width:
            found.append(strip)
            n %= strip.width
    return found or kinds[-1:]


def _along_columns(spec: FewRowsSpec, facts: TargetFacts) -> list[_Strip]:
    """There are vectors of sums for each row, beside those of B: three times so many where loads go
    early. Wide strips read memory in long pieces."""
    lanes, n = facts.lanes("f32"), spec.product.n
    each = prod(spec.rows) + (3 if facts.in_order else 1)
    most = max(1, min(_MOST_VECTORS, facts.vector_registers // each))
    vectors = min(most, max(1, n // lanes)) if isinstance(n, int) else most
    rest = n % (vectors * lanes) // lanes if isinstance(n, int) else 1
    found = [_Strip(vectors, lanes), *([_Strip(rest, lanes)] if 0 < rest < vectors else [])]
    return found + [_Strip(1, width) for width in _halves(lanes)]


def _along_sum(spec: FewRowsSpec, facts: TargetFacts) -> list[_Strip]:
    """There is a sum for each column of a strip."""
    lanes = facts.lanes("f32")
    most = max(1, min(_MOST_COLUMNS, facts.vector_registers // 2 // prod(spec.rows)))
    widest = 2 ** (most.bit_length() - 1)
    widths = [widest, *_halves(widest)]
    return [_Strip(max(1, width // lanes), min(width, lanes)) for width in widths]


def _halves(count: int) -> list[int]:
    """The powers of two below a power of two, the greatest first."""
    return [2**i for i in reversed(range(count.bit_length() - 1))]


class _Kernel:
    def __init__(
        self, function: ir.Function, spec: FewRowsSpec, facts: TargetFacts, epilogue: Epilogue
    ) -> None:
        self.function, self.spec, self.facts, self.epilogue = function, spec, facts, epilogue
        self.buffers, self.dims, self.begin, self.end, self.sums = function.args
        self.sums.add_attribute("noalias")
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.at = Arith(self.b, self.dims)

    def emit(self) -> None:
        """What is invariant, then the loop over tasks."""
        at, product = self.at, self.spec.product
        self.a, self.matrix = (
            load_invariant(self.b, self.buffers, i, PTR) for i in (product.a, product.b)
        )
        self.n, self.k = at.size(product.n), at.size(product.k[0].extent)
        self.n_step, self.k_step = at.size(self.spec.n_step), at.size(self.spec.k_step)
        each = _task_columns(self.spec, self.facts, at)
        extents = [at.size(dim.extent) for dim in product.batch]
        counts = [at.product(extents), at.ceil_div(self.n, each)]
        with for_range(self.b, self.begin, self.end) as task:
            batch, block = unravel(at, task, counts)
            indices = unravel(at, batch, extents)
            first = at.mul(block, each)
            self._task(indices, first, at.minimum(self.n, at.add(first, each)))
        self.b.ret(ir.Constant(I32, 0))

    def _task(self, batch: list[Index], first: Index, last: Index) -> None:
        """Strips of columns [first, last): as many as there are of each kind."""
        at, dims = self.at, self.spec.product.batch
        a = address(self.b, self.a, at.value(self._sum(batch, [d.a_stride for d in dims])), F32)
        start = self._sum(batch, [dim.b_stride for dim in dims])
        for strip in _strips(self.spec, self.facts):
            count = at.div(at.sub(last, first), strip.width)
            stop = at.add(first, at.mul(count, strip.width))
            with for_range(self.b, at.value(first), at.value(stop), i64(strip.width)) as column:
                place = at.add(start, at.mul(column, self.n_step))
                matrix = address(self.b, self.matrix, at.value(place), F32)
                self._strip(strip, a, matrix, batch, column)
            first = stop

    def _sum(self, indices: list[Index], strides: list[Size]) -> Index:
        return self.at.dot(indices, [self.at.size(stride) for stride in strides])

    def _strip(
        self, strip: _Strip, a: ir.Value, matrix: ir.Value, batch: list[Index], column: ir.Value
    ) -> None:
        at, product = self.at, self.spec.product
        strides = [at.value(at.size(dim.a_stride)) for dim in product.rows]
        strides = [i64(0)] * (2 - len(strides)) + strides
        k, module = at.value(self.k), self.function.module
        if self.spec.along_sum:
            sum_up = columns_function(module, self.facts, self.spec.rows, strip.width)
            self.b.call(sum_up, [a, matrix, self.sums, *strides, at.value(self.n_step), k])
        else:
            sum_up = micro_kernel(module, self.facts, self._shape(strip))
            step = at.value(at.size(product.k[0].a_stride))
            pitch = at.value(self.k_step)
            self.b.call(sum_up, [a, matrix, self.sums, i64(0), *strides, k, step, pitch])
        apply = tile_epilogue_function(
            self.function, product, self.facts, self.epilogue, strip.lanes, strip.vectors, False
        )
        scalars = [*self.spec.rows, column, 0, *[0] * len(product.rows), *batch]
        values = [at.value(x) for x in scalars]
        self.b.call(apply, [self.buffers, self.dims, self.sums, *values])

    def _shape(self, strip: _Strip) -> MicroKernel:
        """The micro-kernel of a strip: its rows of B lie `k_step` apart."""
        facts, (k,) = self.facts, self.spec.product.k
        sums = prod(self.spec.rows) * strip.vectors
        room = facts.vector_registers - strip.vectors - 1
        chains = next((c for c in (1, 2, 4) if sums * c >= _LATENCY_SUMS), 4)
        while chains > 1 and sums * chains > room:
            chains //= 2
        group = gcd(strip.vectors, facts.vector_group)
        whole = strip.lanes == facts.lanes("f32")
        steps = k.extent if isinstance(k.extent, int) else None
        return MicroKernel(
            self.spec.rows, strip.vectors // group, strip.lanes * group, 0, 1, chains, chains,
            k.a_stride == 1, max(1, _AHEAD_BYTES // (strip.width * _BYTES)) if whole else 0,
            0 if steps is not None and steps <= _CHUNK else _CHUNK,
            early=facts.in_order and chains == 1,
            by_lane=whole and facts.lane_products and k.a_stride == 1
            and (steps is None or steps >= strip.lanes),
        )  # fmt: skip
