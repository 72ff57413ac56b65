"""How attention is cut: panels of queries, blocks of keys, register tiles, tasks.

A panel is a few vectors of queries side by side: its scores lie in scratch as [key][query], so
that K is read in place, maxima and sums of the softmax are sums of vectors, and nothing but the
panel's own queries is ever packed.
"""

from dataclasses import dataclass, replace

from cuvil.codegen.attention.spec import AttentionChoice, AttentionSpec
from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.micro_shape import MicroKernel
from cuvil.codegen.contraction.tasks import TASK_OPERATIONS, TASKS_WANTED, TaskCount
from cuvil.codegen.facts import TargetFacts

UNROLL = 4  # keys per trip of the softmax's loops; scratch has room for whole trips
_MOST_QUERIES = 32  # per panel
_MOST_KEYS = 14  # per tile of scores
_LEAST_KEYS = 6
_LATENCY_SUMS = 8  # independent accumulators that keep two FMA pipes busy


@dataclass(frozen=True)
class Piece:
    """Columns of V that one micro-kernel takes: `vectors` vectors of `lanes` from `first` on.

    place: columns of sums before it. Pieces may overlap in V, never in the sums.
    """

    first: int
    lanes: int
    vectors: int
    place: int

    @property
    def width(self) -> int:
        """Columns of the piece."""
        return self.lanes * self.vectors


@dataclass(frozen=True)
class Panel:
    """Register tiles for `vectors` vectors of queries.

    keys: most keys of a tile of scores. rows, pieces: the tiles of the result.
    """

    vectors: int
    lanes: int
    keys: int
    rows: int
    pieces: tuple[Piece, ...]

    @property
    def width(self) -> int:
        """Queries of the panel."""
        return self.vectors * self.lanes


def make_panels(spec: AttentionSpec, facts: TargetFacts) -> tuple[Panel, ...]:
    """The panels that the extents need, widest first; a narrower one is for the last queries."""
    widest, lanes = _vectors(spec, facts), facts.lanes("f32")
    counts = [widest]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    extent = spec.rows.extent
    if isinstance(extent, int):
        full, tail = divmod(extent, widest * lanes)
        last = next((c for c in reversed(counts) if c * lanes >= tail), widest)
        counts = [c for c in counts if (c == widest and full) or (c == last and tail)] or [1]
    return tuple(_panel(spec, facts, count) for count in counts)


def panel_width(spec: AttentionSpec, facts: TargetFacts) -> int:
    """Queries of the widest panel."""
    return _vectors(spec, facts) * facts.lanes("f32")


def key_block(spec: AttentionSpec, facts: TargetFacts, panel: Panel) -> int:
    """Keys whose scores of one panel lie in scratch: whole tiles, by cost about two thirds of
    L1."""
    if spec.choice.tiles:
        return spec.choice.tiles * panel.keys
    most = facts.l1_bytes * 2 // 3 // (4 * panel.width)
    return max(4, most // panel.keys) * panel.keys


def micro_shape(
    facts: TargetFacts, rows: int, vectors: int, lanes: int, panel: int, unit: bool
) -> MicroKernel:
    """A micro-kernel of this tile, with as many chains of sums as it needs."""
    sums, chains = rows * vectors, 1
    room = facts.vector_registers - vectors - 1
    while sums * chains < _LATENCY_SUMS and sums * chains * 2 <= room and chains < 4:
        chains *= 2
    return MicroKernel((1, rows), vectors, lanes, panel, 1, chains, chains, unit)


@dataclass(frozen=True)
class Scratch:
    """Where a panel's own memory begins, in floats: its queries, their scores, the sums of values,
    one factor per query; and how many floats that takes in all."""

    queries: int
    scores: int
    sums: int
    factors: int
    total: int


def scratch_of(spec: AttentionSpec, facts: TargetFacts, panel: Panel) -> Scratch:
    """The layout of scratch for a panel: each part begins at a multiple of 64 bytes."""
    sizes = (
        spec.width * panel.width,
        (key_block(spec, facts, panel) + UNROLL) * panel.width,
        sum(piece.width for piece in panel.pieces) * panel.width,
        panel.width,
    )
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-size // 16) * 16)
    return Scratch(*starts)


def scratch_bytes(spec: AttentionSpec, facts: TargetFacts) -> int:
    """Bytes of scratch that the kernel needs, whatever the run-time extents."""
    return 4 * max(scratch_of(spec, facts, p).total for p in make_panels(spec, facts))


@dataclass(frozen=True)
class Cut:
    """The task space: units are panels, batch by batch; a task is `each` of them."""

    panels: Index
    units: Index
    each: Index
    tasks: Index


def make_cut(spec: AttentionSpec, facts: TargetFacts, at: Arith) -> Cut:
    """The task space for the extents that `at` sees."""
    width = panel_width(spec, facts)
    panels = at.ceil_div(at.size(spec.rows.extent), width)
    units = at.mul(at.product([at.size(dim.extent) for dim in spec.batch]), panels)
    cost = at.mul(at.maximum(1, at.size(spec.keys.extent)), 2 * width * (spec.width + spec.columns))
    wanted = at.maximum(at.div(TASK_OPERATIONS, cost), at.div(units, TASKS_WANTED))
    most = at.maximum(1, at.minimum(units, wanted))
    each = at.ceil_div(units, at.maximum(1, at.ceil_div(units, most)))
    each = at.maximum(1, each)
    return Cut(panels, units, each, at.ceil_div(units, each))


@TaskCount
def task_count(spec: AttentionSpec, facts: TargetFacts, at: Arith) -> Index:
    """Tasks of the kernel."""
    return make_cut(spec, facts, at).tasks


def _spare(facts: TargetFacts) -> int:
    return 1 if facts.fma else 2


def alternatives(spec: AttentionSpec, facts: TargetFacts) -> list[AttentionChoice]:
    """Choices for a spec, the cut of costs first; each gives another cut: panels of other widths,
    shorter and longer blocks of keys, other tiles of the result."""
    usual = replace(spec, choice=AttentionChoice())
    panel = make_panels(usual, facts)[0]
    own = AttentionChoice(
        _vectors(usual, facts), key_block(usual, facts, panel) // panel.keys, panel.rows
    )
    choices = [own]
    choices += [replace(own, vectors=n, rows=0) for n in (1, 2, 4) if _keys(facts, n) > 1]
    choices += [replace(own, tiles=max(1, n)) for n in (own.tiles // 2, own.tiles * 2)]
    choices += [replace(own, rows=n) for n in (own.rows // 2, own.rows * 2)]
    found: dict[object, AttentionChoice] = {}
    for choice in choices:
        cut = replace(spec, choice=choice)
        panels = make_panels(cut, facts)
        found.setdefault((panels, tuple(key_block(cut, facts, p) for p in panels)), choice)
    return list(found.values())


def _vectors(spec: AttentionSpec, facts: TargetFacts) -> int:
    """Vectors of queries of the widest panel: tiles of scores keep enough keys."""
    if spec.choice.vectors:
        return spec.choice.vectors
    for vectors in (4, 2):
        fits = vectors * facts.lanes("f32") <= _MOST_QUERIES
        if fits and _keys(facts, vectors) >= _LEAST_KEYS:
            return vectors
    return 1


def _keys(facts: TargetFacts, vectors: int) -> int:
    return min(_MOST_KEYS, (facts.vector_registers - vectors - _spare(facts)) // vectors)


def _panel(spec: AttentionSpec, facts: TargetFacts, vectors: int) -> Panel:
    lanes = facts.lanes("f32")
    rows, across = _result_tile(spec, facts, vectors * lanes)
    return Panel(vectors, lanes, _keys(facts, vectors), rows, _pieces(spec.columns, lanes, across))


def _result_tile(spec: AttentionSpec, facts: TargetFacts, width: int) -> tuple[int, int]:
    """(rows, vectors) with the most multiply-adds per load; rows divide the panel."""
    lanes = facts.lanes("f32")
    count = max(1, spec.columns // lanes)
    extent = spec.rows.extent
    needed = min(width, extent) if isinstance(extent, int) else width
    best, chosen = 0.0, (1, 1)
    heights = [1 << n for n in range(width.bit_length())]
    wanted = min(spec.choice.rows, width)
    for rows in (h for h in heights if (h == wanted if wanted else h < 2 * needed)):
        for across in range(1, min(4, count) + 1):
            even = count / -(-count // across)
            fits = rows * across + across + _spare(facts) <= facts.vector_registers
            if width % rows == 0 and fits and rows * even / (rows + even) > best:
                best, chosen = rows * even / (rows + even), (rows, across)
    return chosen


def _pieces(columns: int, lanes: int, across: int) -> tuple[Piece, ...]:
    """Columns in even groups of at most `across` vectors; what is left is one narrower vector, or
    two, of which the last ends with the last column."""
    count, left = divmod(columns, lanes)
    groups = -(-count // across)
    shapes = [(lanes, count // groups + (g < count % groups)) for g in range(groups)]
    if left:
        narrow = 1 << (left - 1).bit_length()
        shapes += [(narrow, 1)] if columns >= narrow else [(narrow // 2, 1)] * 2
    pieces: list[Piece] = []
    first = 0
    for width, vectors in shapes:
        start = min(first, columns - width * vectors)
        pieces.append(Piece(start, width, vectors, sum(p.width for p in pieces)))
        first += width * vectors
    return tuple(pieces)
