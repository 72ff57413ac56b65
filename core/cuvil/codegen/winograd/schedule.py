"""How a Winograd convolution is cut: tiles of a task, its panels, register tiles, scratch.

A task transforms some tiles of the image, then for each column of tiles of the products (a panel
of B, or a part) multiplies all frequencies and transforms the sums back. Of tasks that share tiles
only a thread's first transforms them.
"""

from dataclasses import dataclass

from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.schedule import Schedule, make_schedule
from cuvil.codegen.contraction.spec import ContractionSpec, KDim, RowDim
from cuvil.codegen.contraction.tasks import TaskCount
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.winograd.spec import WinogradSpec

TASKS_WANTED = 8
_LINE = 16  # elements of a cache line
_PAD = 16  # elements behind rows and frequencies, so that they do not share sets of L1
_LEAST_TILES = 16  # of a task: with fewer, reading B costs more than the products
_LEAST_OF_TWO = 7  # tiles of each of two tasks, where it would be one: a twentieth is lost by it
_LEAST_PANELS = 4  # to split: with fewer, blocks of all panels are small enough


@dataclass(frozen=True)
class Places:
    """Scratch in floats: a line that tells what is transformed, transformed tiles [frequency][tile]
    [channel], sums [frequency][tile][column], one tile of A or of C; and the pitches of the second
    and third."""

    tiles: int
    row: int
    frequency: int
    sums: int
    sum_frequency: int
    patch: int
    total: int


@dataclass(frozen=True)
class Cut:
    """The task space: `row_blocks` of tiles, whose sizes differ by one at most and take turns so
    that half of the blocks have half of the tiles, by `panel_blocks` of `panels`."""

    down: Index
    across: Index
    total: Index
    row_blocks: Index
    panels: int
    panel_blocks: int

    def start(self, at: Arith, block: Index) -> Index:
        """The first tile of a block."""
        return at.div(at.mul(block, self.total), self.row_blocks)


def inner(spec: WinogradSpec, tiles: int) -> ContractionSpec:
    """The product of one frequency, for the register tile and its micro-kernels."""
    rows = (RowDim(tiles, row_pitch(spec), 0),)
    return ContractionSpec((), rows, (KDim(spec.channels, 1),), spec.n, spec.panel)


def register_tile(spec: WinogradSpec, facts: TargetFacts) -> Schedule:
    """Vectors and rows of the products' tile."""
    return make_schedule(inner(spec, 1 << 20), facts)


def row_pitch(spec: WinogradSpec) -> int:
    """Elements from one transformed tile to the next."""
    return -(-spec.channels // _PAD) * _PAD + _PAD


def most_tiles(spec: WinogradSpec, facts: TargetFacts) -> int:
    """Tiles of a task: transformed, and with one column of sums, they take 3/4 of L2."""
    bytes_per_tile = 4 * spec.frequencies * (row_pitch(spec) + spec.panel)
    fit = max(_LEAST_TILES, facts.l2_bytes * 3 // 4 // bytes_per_tile)
    known = total_tiles(spec, Arith(None, ()))[2] if _static(spec) else fit
    assert isinstance(known, int)
    return max(1, min(fit, known))


def places(spec: WinogradSpec, facts: TargetFacts) -> Places:
    """The layout of scratch."""
    tiles = most_tiles(spec, facts)
    row = row_pitch(spec)
    frequency = tiles * row + _PAD
    sum_frequency = tiles * register_tile(spec, facts).width + _PAD
    sums = _LINE + spec.frequencies * frequency
    patch = sums + spec.frequencies * sum_frequency
    room = max(spec.frequencies * spec.channels, spec.m[0] * spec.m[1] * spec.panel)
    return Places(_LINE, row, frequency, sums, sum_frequency, patch, patch + room)


def scratch_bytes(spec: WinogradSpec, facts: TargetFacts) -> int:
    """Bytes of scratch that the kernel needs, whatever the run-time extents."""
    return 4 * places(spec, facts).total


def total_tiles(spec: WinogradSpec, at: Arith) -> tuple[Index, Index, Index]:
    """(down, across, in all): tiles of one image, and of all."""
    down = at.ceil_div(at.size(spec.result.rows), spec.m[0])
    across = at.ceil_div(at.size(spec.result.columns), spec.m[1])
    return down, across, at.mul(at.size(spec.image.count), at.mul(down, across))


def make_cut(spec: WinogradSpec, facts: TargetFacts, at: Arith) -> Cut:
    """The task space for the extents that `at` sees."""
    down, across, total = total_tiles(spec, at)
    panels = -(-spec.n // spec.panel)
    panel_blocks = min(panels, TASKS_WANTED) if panels >= _LEAST_PANELS else 1
    each_panels = -(-panels // panel_blocks)
    panel_blocks = -(-panels // each_panels)
    wanted = at.ceil_div(total, -(-TASKS_WANTED // panel_blocks))
    tiles = at.minimum(most_tiles(spec, facts), at.maximum(_LEAST_TILES, wanted))
    row_blocks = at.ceil_div(total, tiles)
    if panel_blocks % 2:  # of an even number of tasks two threads get the same
        several = at.minimum(1, at.div(total, 2 * _LEAST_OF_TWO))
        row_blocks = at.add(row_blocks, at.mul(several, at.mod(row_blocks, 2)))
    return Cut(down, across, total, row_blocks, each_panels, panel_blocks)


@TaskCount
def task_count(spec: WinogradSpec, facts: TargetFacts, at: Arith) -> Index:
    """Tasks of the kernel."""
    cut = make_cut(spec, facts, at)
    return at.mul(cut.row_blocks, cut.panel_blocks)


def _static(spec: WinogradSpec) -> bool:
    sizes = (spec.image.count, spec.result.rows, spec.result.columns)
    return all(isinstance(size, int) for size in sizes)
