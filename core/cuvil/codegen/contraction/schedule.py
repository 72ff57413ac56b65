"""How a contraction is cut: the register tile, blocks for the caches, tasks for the threads.

This is what is fixed when the kernel is emitted; what depends on run-time extents is in `cut`.
"""

from dataclasses import dataclass
from math import gcd, prod

from llvmlite import ir

from cuvil.codegen.contraction.arith import Size, static_product
from cuvil.codegen.contraction.dot import in_parts, is_shifted, sum_type
from cuvil.codegen.contraction.matrix_steps import MatrixOperands
from cuvil.codegen.contraction.matrix_tiles import (
    MatrixTiles,
    matrix_tiles,
    paired_bytes,
    shared_steps,
)
from cuvil.codegen.contraction.micro_shape import MicroKernel
from cuvil.codegen.contraction.spec import ContractionSpec, CutChoice, KDim, merge_k
from cuvil.codegen.facts import TargetFacts, dtype_bits

_MOST_ROWS = 28
_LATENCY_SUMS = 10  # independent accumulators that keep two FMA pipes of latency 4-5 busy
_PAD = 16  # elements after each packed row of A
_CHUNK = 256  # k steps summed in registers: rounding errors stay small, joining costs a percent
_AHEAD_BYTES = 8192  # of B: two pages, since hardware prefetchers stop at the end of one
_PREFETCH_ROWS = 4  # with fewer, loads of B alone keep the memory busy
PACKS = ("", "never", "always", "aliased")  # by the number in a `CutChoice`


@dataclass(frozen=True)
class Schedule:
    """The cut that does not depend on run-time extents.

    lanes, vectors: the tile is `width` = lanes*vectors columns. tile: rows per tile in each row
    dim (1 but for the last two). k: merged k dims. k_block: most steps of the outermost k dim
    per pass over a task, 0 for all. most_tiles, most_panels: bounds of a task; 0: no bound.
    pack: "never", "always", or "aliased": when the row stride is a multiple of 4096 bytes.
    matrix: how pairs of rows are multiplied, where they are. widened: rows of float16 are copied as
    float32. wide_steps: so are as many steps of B, where it is stored as float16, for all of a
    task's tiles but of a single row.
    """

    lanes: int
    vectors: int
    tile: tuple[int, ...]
    k: tuple[KDim, ...]
    k_block: int
    most_tiles: int
    most_panels: int
    pack: str
    matrix: MatrixTiles | None = None
    widened: bool = False
    wide_steps: int = 0

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.lanes * self.vectors

    @property
    def tile_rows(self) -> int:
        """Rows of the largest tile."""
        return prod(self.tile)


def make_schedule(spec: ContractionSpec, facts: TargetFacts) -> Schedule:
    """Tile and blocks by the spec's choice, else from its static extents and the facts."""
    lanes = min(facts.lanes(spec.dtype), spec.panel)
    k = merge_k(spec.k)
    k_block = _k_block(spec, facts, k)
    matrix = matrix_tiles(spec, facts, lanes, k, k_block)
    vectors, rows = (matrix.vectors, matrix.rows) if matrix else _register_tile(spec, facts, lanes)
    tile = _spread(rows, [dim.extent for dim in spec.rows])
    most_tiles = max(1, facts.l2_bytes // 2 // row_bytes(spec, k, k_block) // prod(tile))
    pack = PACKS[spec.choice.pack] or _pack(spec, facts, k, prod(tile))
    widened = spec.half_rows and _widens(facts, k, k_block)
    pack = "always" if widened or (matrix and matrix.rows_in_pairs) else pack
    most_panels = 8 if k_block else 0
    return Schedule(
        lanes, vectors, tile, k, k_block, most_tiles, most_panels, pack, matrix, widened,
        _wide_steps(spec, facts, k, k_block, lanes * vectors),
    )  # fmt: skip


def cut_of(schedule: Schedule) -> CutChoice:
    """The choice that gives a schedule of known extents again."""
    extent = schedule.k[0].extent
    assert isinstance(extent, int)
    blocks = -(-extent // schedule.k_block) if schedule.k_block else 1
    pack = PACKS.index(schedule.pack)
    return CutChoice(schedule.vectors, schedule.tile_rows, max(1, blocks), pack)


def scratch_bytes(spec: ContractionSpec, facts: TargetFacts) -> int:
    """Bytes of scratch that the kernel needs, whatever the run-time extents."""
    schedule = make_schedule(spec, facts)
    starts = schedule.width * 4 if is_shifted(spec.dtype, schedule.lanes, facts) else 0
    starts += paired_bytes(schedule.matrix, spec.dtype)
    starts += schedule.wide_steps * schedule.width * 4
    return pack_bytes(spec, schedule) + sums_bytes(spec, schedule) + starts


def pack_bytes(spec: ContractionSpec, schedule: Schedule) -> int:
    """Bytes of the packed rows of A, at the start of scratch."""
    if schedule.pack == "never":
        return 0
    rows = schedule.most_tiles * packed_rows(schedule)
    return rows * pack_pitch(schedule) * dtype_bits(spec.dtype) // 8


def packed_rows(schedule: Schedule) -> int:
    """Rows that the copy of a tile takes: whole pairs."""
    return schedule.tile_rows + schedule.tile_rows % 2


def sums_bytes(spec: ContractionSpec, schedule: Schedule) -> int:
    """Bytes of the tiles of sums: one, or all of a task when k is blocked."""
    tile = schedule.tile_rows * schedule.width * dtype_bits(spec.dtype) // 8
    if not schedule.k_block:
        return tile
    return tile * schedule.most_tiles * schedule.most_panels * (spec.panel // schedule.width)


def pack_pitch(schedule: Schedule) -> int:
    """Elements from one packed row of A to the next: never a multiple of 4096 bytes."""
    extent = schedule.k_block or schedule.k[0].extent
    assert isinstance(extent, int)
    return -(-extent // _PAD) * _PAD + _PAD


def tile_shape(
    spec: ContractionSpec,
    schedule: Schedule,
    facts: TargetFacts,
    size: tuple[int, int],
    vectors: int,
    following: int = 0,
) -> MicroKernel:
    """The micro-kernel for a tile of `size` rows and `vectors` vectors. following: elements of
    what follows in B that each step is to ask for.

    All columns of a row are summed in one order, those of the narrower last tile too: where columns
    of B are equal, so are their sums.
    """
    several = size[0] * size[1] > 1
    matrix = schedule.matrix if several else None
    wide = several and schedule.wide_steps > 0
    sums = size[0] * size[1] * schedule.vectors
    room = facts.registers(spec.dtype) - schedule.vectors - 1
    chains = next((c for c in (1, 2, 4) if sums * c >= _LATENCY_SUMS), 4)
    while chains > 1 and sums * chains > room:
        chains //= 2
    if in_parts(spec.dtype, facts):
        chains = 1
    if matrix:
        chains = min(chains, 2)
    levels = len(schedule.k)
    unit = schedule.k[-1].a_stride == 1
    row_bytes = spec.panel * dtype_bits(spec.stored) // 8
    copied = wide or bool(matrix and matrix.steps)
    far = size[0] * size[1] >= _PREFETCH_ROWS and not copied
    ahead = _AHEAD_BYTES // row_bytes if far else 0
    steps = static_product([dim.extent for dim in schedule.k])
    exact = isinstance(sum_type(spec.dtype), ir.IntType)
    chunk = 0 if exact or (steps is not None and steps <= _CHUNK) else _CHUNK
    group = 1 if facts.dots else gcd(vectors, facts.vector_group)  # dots take one register
    pitch = vectors * schedule.lanes if copied else spec.panel
    return MicroKernel(
        size, vectors // group, schedule.lanes * group, pitch, levels, chains, chains, unit,
        ahead, chunk, spec.dtype, early=facts.in_order and chains == 1,
        by_lane=facts.lane_products and unit and _many(schedule.k[-1].extent, facts, spec.dtype),
        matrix=MatrixOperands(matrix.steps > 0, matrix.rows_in_pairs) if matrix else None,
        halves=spec.halves and not wide, half_rows=spec.half_rows and not schedule.widened,
        following=following if far else 0,
    )  # fmt: skip


def _many(extent: Size, facts: TargetFacts, dtype: str) -> bool:
    """Whether there are, or may be, as many steps as a vector has lanes."""
    return not isinstance(extent, int) or extent >= facts.lanes(dtype)


def _register_tile(spec: ContractionSpec, facts: TargetFacts, lanes: int) -> tuple[int, int]:
    """(vectors, rows) with the most multiply-adds per load that the registers hold."""
    total = static_product([dim.extent for dim in spec.rows])
    best, chosen = 0.0, (1, 1)
    wanted = spec.choice.vectors
    for vectors in (wanted,) if wanted else range(1, spec.panel // lanes + 1):
        rows = min(_most_rows(spec, facts, lanes, vectors), spec.choice.rows or _MOST_ROWS)
        if (spec.panel // lanes) % vectors or rows < 1:
            continue
        rows = min(rows, total or rows)
        if rows * vectors / (rows + vectors) > best:
            best, chosen = rows * vectors / (rows + vectors), (vectors, rows)
    return chosen


def _most_rows(spec: ContractionSpec, facts: TargetFacts, lanes: int, vectors: int) -> int:
    """Rows of `vectors` sums each, beside so many vectors of B and what is read of A."""
    room = facts.registers(spec.dtype) - vectors
    if facts.scalar_products:  # halves of B lie beside the vector that they are widened to
        return (room - spec.halves) // vectors
    if facts.in_order and not facts.lane_products:  # a number of A for each row, loaded early
        return room // (vectors + 1)
    rows = (room - (1 if facts.fma else 2)) // vectors
    if facts.lane_products:  # a vector of A for each row, two of B, one to shift by, two to widen
        widens = spec.halves and not (spec.half_rows and facts.half_products)
        others = 2 + is_shifted(spec.dtype, lanes, facts) + 2 * widens
        return min(rows, (facts.registers(spec.dtype) - others) // (vectors + 1))
    return rows


def _spread(rows: int, extents: list[Size]) -> tuple[int, ...]:
    """Rows of a tile per dim: along the last dim, and over the one before it when that is short."""
    last = extents[-1]
    inner = min(rows, max(1, last)) if isinstance(last, int) else rows
    tile = [1] * len(extents)
    tile[-1] = inner
    if len(extents) > 1 and inner < rows and inner == last:
        outer = extents[-2]
        tile[-2] = min(rows // inner, max(1, outer) if isinstance(outer, int) else rows)
    return tuple(tile)


def _k_block(spec: ContractionSpec, facts: TargetFacts, k: tuple[KDim, ...]) -> int:
    """Steps of the outermost k dim for which B's panel takes a quarter of L2 and A a half."""
    size = dtype_bits(spec.dtype) // 8
    rows = static_product([dim.extent for dim in spec.rows]) or 128
    inner = static_product([dim.extent for dim in k[1:]])
    extent = k[0].extent
    if spec.choice.k_blocks and isinstance(extent, int):
        return _even_block(extent, spec.choice.k_blocks, inner)
    if rows <= 4 or inner is None or inner == 0:
        return 0
    steps = min(facts.l2_bytes // 4 // spec.panel, facts.l2_bytes // 2 // min(rows, 128)) // size
    block = max(1, steps // inner)
    if not isinstance(extent, int):
        return block
    if extent <= block:
        return 0
    even = _even_block(extent, -(-extent // block), inner)
    return min(block, even) if inner == 1 else even


def _widens(facts: TargetFacts, k: tuple[KDim, ...], k_block: int) -> bool:
    """Whether rows of float16 are converted once, when they are copied, and not by every tile."""
    known = k_block > 0 or isinstance(k[0].extent, int)
    return known and not facts.half_products and len(k) == 1 and k[0].a_stride == 1


def _wide_steps(
    spec: ContractionSpec, facts: TargetFacts, k: tuple[KDim, ...], k_block: int, width: int
) -> int:
    """Steps of B to copy as float32: where sums leave no registers to convert in, and there is
    room in L2."""
    as_such = spec.half_rows and bool(facts.half_products)
    if not spec.halves or as_such or not facts.lane_products:
        return 0
    steps = shared_steps(spec, k, k_block)
    return steps if steps * width * 4 <= facts.l2_bytes // 2 else 0


def _even_block(extent: int, blocks: int, inner: int | None) -> int:
    """Steps of the outermost k dim for so many blocks of equal length; 0 for one."""
    if blocks <= 1 or extent <= 1:
        return 0
    even = -(-extent // min(blocks, extent))
    return -(-even // _PAD) * _PAD if inner == 1 else even


def row_bytes(spec: ContractionSpec, k: tuple[KDim, ...], k_block: int) -> int:
    """About how many bytes of A one more row touches that its neighbours do not."""
    size = dtype_bits(spec.dtype) // 8
    steps = static_product([dim.extent for dim in k]) or 1024
    if k_block:
        steps = k_block * (static_product([dim.extent for dim in k[1:]]) or 1)
    stride, first = spec.rows[-1].a_stride, k[0].extent
    if len(k) > 1 and isinstance(stride, int) and isinstance(first, int):
        steps = min(steps, max(1, stride * first))
    return max(1, steps) * size


def _pack(spec: ContractionSpec, facts: TargetFacts, k: tuple[KDim, ...], rows: int) -> str:
    """Whether rows of A that share few sets of L1 are worth copying first."""
    if len(k) > 1 or k[0].a_stride != 1 or rows <= 4:
        return "never"
    stride = spec.rows[-1].a_stride
    if rows + 2 <= facts.l1_ways * 3 // 2:
        return "never"
    if not isinstance(stride, int):
        return "aliased"
    page = facts.l1_bytes // facts.l1_ways
    places = page // gcd(max(1, stride) * dtype_bits(spec.dtype) // 8, page)
    return "always" if -(-rows // places) + 2 > facts.l1_ways * 3 // 2 else "never"
