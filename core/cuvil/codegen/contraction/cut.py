"""The task space of a contraction: what depends on run-time extents, computed by one formula in
Python and in the kernel; and in which order tasks and tiles ask for memory."""

from dataclasses import dataclass

from cuvil.codegen.contraction.arith import Arith, Index, static_product
from cuvil.codegen.contraction.schedule import Schedule, make_schedule, row_bytes
from cuvil.codegen.contraction.spec import ContractionSpec
from cuvil.codegen.contraction.tasks import TASK_OPERATIONS, TASKS_WANTED, TaskCount
from cuvil.codegen.facts import TargetFacts, dtype_bits

_FEW_TASKS = 16  # at least, where more of them read the same memory again
_STREAM_ROWS = 10  # streaming B from memory costs as much as about this many rows of sums
_PANELS_PER_PACKING = 12  # of B, that share the cost of copying rows of A


@dataclass(frozen=True)
class Cut:
    """The cut for given extents: ints or values of a kernel.

    row_tiles: tiles per row dim; tiles and panels: in all; task_tiles, task_panels: per task;
    batches, row_blocks, panel_blocks: the task space. rows_first: 1 where row blocks are its
    fastest index, so that a panel stays in the cache while all rows pass; 0 where panel blocks are.
    """

    row_tiles: list[Index]
    tiles: Index
    panels: Index
    task_tiles: Index
    task_panels: Index
    batches: Index
    row_blocks: Index
    panel_blocks: Index
    rows_first: Index


def make_cut(spec: ContractionSpec, schedule: Schedule, facts: TargetFacts, at: Arith) -> Cut:
    """The task space for the extents that `at` sees."""
    row_tiles = [
        at.ceil_div(at.size(dim.extent), tile)
        for dim, tile in zip(spec.rows, schedule.tile, strict=True)
    ]
    tiles = at.product(row_tiles)
    panels = at.ceil_div(at.size(spec.n), spec.panel)
    batches = at.product([at.size(dim.extent) for dim in spec.batch])
    k = at.maximum(1, at.product([at.size(dim.extent) for dim in schedule.k]))
    cost = at.mul(k, 2 * spec.panel * max(schedule.tile_rows, _STREAM_ROWS))
    units = at.mul(batches, at.mul(tiles, panels))
    packed = schedule.pack != "never"
    tasks = TASKS_WANTED // 2 if packed else TASKS_WANTED
    wanted = at.maximum(at.div(TASK_OPERATIONS, cost), at.div(units, tasks))
    if schedule.k_block:  # a block of a panel stays in the cache for as long as one task lasts
        enough = at.less(_FEW_TASKS - 1, at.mul(batches, panels))
        wanted = at.maximum(wanted, at.mul(enough, tiles))
    area = at.maximum(1, wanted)
    few = at.maximum(1, at.minimum(panels, _PANELS_PER_PACKING if packed else 1))
    most_tiles = at.maximum(1, at.minimum(tiles, schedule.most_tiles))
    task_tiles = at.minimum(most_tiles, at.maximum(1, at.div(area, few)))
    most_panels = at.minimum(panels, schedule.most_panels) if schedule.most_panels else panels
    task_panels = at.maximum(1, at.minimum(most_panels, at.div(area, task_tiles)))
    row_blocks = at.ceil_div(tiles, task_tiles)
    panel_blocks = at.ceil_div(panels, task_panels)
    return Cut(
        row_tiles,
        tiles,
        panels,
        at.ceil_div(tiles, row_blocks),
        at.ceil_div(panels, panel_blocks),
        batches,
        row_blocks,
        panel_blocks,
        _rows_first(spec, schedule, facts, at, (row_blocks, panel_blocks)),
    )


def _rows_first(
    spec: ContractionSpec,
    schedule: Schedule,
    facts: TargetFacts,
    at: Arith,
    blocks: tuple[Index, Index],
) -> Index:
    """1 where fewer bytes pass by when each panel is read once and all rows again and again; what
    takes at most half of L2 is read once in any order."""
    row_blocks, panel_blocks = blocks
    half = facts.l2_bytes // 2
    b = _b_bytes(spec, at)
    rows = at.product([at.size(dim.extent) for dim in spec.rows])
    a = at.mul(rows, row_bytes(spec, schedule.k, 0))
    all_a = at.mul(a, at.choose(at.less(half, a), panel_blocks, 1))
    all_b = at.mul(b, at.choose(at.less(half, b), row_blocks, 1))
    return at.less(at.add(all_a, b), at.add(all_b, a))


@TaskCount
def task_count(spec: ContractionSpec, facts: TargetFacts, at: Arith) -> Index:
    """Tasks of the kernel."""
    cut = make_cut(spec, make_schedule(spec, facts), facts, at)
    return at.mul(cut.batches, at.mul(cut.row_blocks, cut.panel_blocks))


def following(spec: ContractionSpec, schedule: Schedule, facts: TargetFacts) -> int:
    """Elements of what follows in B that a step asks for, so that a task's tiles together ask for
    all of its next panel: memory is as busy during the last tile as during the first. Only where
    the sizes are known, and B comes from memory. A power of two, so that kernels share tiles."""
    extents = [d.extent for dims in (spec.batch, spec.rows, spec.k) for d in dims]
    if static_product(extents) is None or not isinstance(spec.n, int):
        return 0
    cut = make_cut(spec, schedule, facts, Arith(None, ()))
    tiles = int(cut.task_tiles)
    one_column = schedule.width == spec.panel and (not schedule.k_block or cut.task_panels == 1)
    from_memory = _b_bytes(spec, Arith(None, ())) > facts.l2_bytes // 2
    if tiles <= 1 or not one_column or not from_memory:
        return 0
    return 1 << (-(-spec.panel // tiles) - 1).bit_length()


def _b_bytes(spec: ContractionSpec, at: Arith) -> Index:
    """Bytes of one batch's B."""
    size = dtype_bits(spec.stored) // 8
    return at.product([size, at.size(spec.n), *(at.size(dim.extent) for dim in spec.k)])
