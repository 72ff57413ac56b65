"""Other cuts of a contraction than the one that costs choose, for measuring which is fastest."""

from __future__ import annotations

from dataclasses import replace

from cuvil.codegen.contraction.schedule import PACKS, Schedule, cut_of, make_schedule
from cuvil.codegen.contraction.spec import ContractionSpec, CutChoice
from cuvil.codegen.facts import TargetFacts

_MOST_BLOCKS = 4  # of a sum: with more, joining them costs more than any cache gives


def alternatives(spec: ContractionSpec, facts: TargetFacts) -> list[CutChoice]:
    """Choices for a spec, the cut of costs first; each gives another cut.

    Tiles of other shapes, rows that come out even where their number is known, other blocks of the
    sum, rows of A packed or not. None where what is summed, or a row of results, is symbolic.
    """
    if not all(isinstance(e, int) for e in (*(d.extent for d in spec.k), spec.n)):
        return []
    usual = make_schedule(spec, facts)
    found = {usual: cut_of(usual)}
    for choice in [*_tiles(spec, facts, usual), *_blocks(usual), *_packs(usual)]:
        made = make_schedule(replace(spec, choice=choice), facts)
        found.setdefault(made, choice)
    return list(found.values())


def _tiles(spec: ContractionSpec, facts: TargetFacts, usual: Schedule) -> list[CutChoice]:
    """One or more vectors wide, as high as registers allow and as high as comes out even."""
    found = []
    for vectors in range(1, spec.panel // usual.lanes + 1):
        if (spec.panel // usual.lanes) % vectors:
            continue
        wide = replace(cut_of(usual), vectors=vectors, rows=0)
        most = make_schedule(replace(spec, choice=wide), facts).tile_rows
        highest = [most, _even(spec, most), max(1, most * 3 // 4), max(1, most // 2)]
        found += [replace(wide, rows=rows) for rows in highest]
    return found


def _even(spec: ContractionSpec, most: int) -> int:
    """The least rows per tile that give as few tiles along the last dim."""
    extent = spec.rows[-1].extent
    if not isinstance(extent, int):
        return most
    return -(-extent // max(1, -(-extent // most))) or 1


def _blocks(usual: Schedule) -> list[CutChoice]:
    """The sum in one, two or four blocks."""
    return [replace(cut_of(usual), k_blocks=n) for n in (1, 2, _MOST_BLOCKS)]


def _packs(usual: Schedule) -> list[CutChoice]:
    """Rows of A copied together first, or not."""
    if len(usual.k) > 1 or usual.k[0].a_stride != 1 or usual.tile_rows <= 4:
        return []
    return [replace(cut_of(usual), pack=PACKS.index(pack)) for pack in ("never", "always")]
