"""Which products are made by instructions that multiply small matrices, and what is laid out in
pairs for them beforehand."""

from dataclasses import dataclass
from math import prod

from cuvil.codegen.contraction.arith import static_product
from cuvil.codegen.contraction.matrix_steps import LANES
from cuvil.codegen.contraction.spec import ContractionSpec, KDim
from cuvil.codegen.facts import TargetFacts, dtype_bits

_LEAST_ROWS = 3  # with two, products of vectors are as good
_LEAST_PAIRED_ROWS = 16  # that share the cost of putting B's columns together


@dataclass(frozen=True)
class MatrixTiles:
    """vectors, rows: of the register tile. steps: at most so many of B, for which pairs of columns
    are put together before all tiles of a task; 0: each tile does so. rows_in_pairs: rows of A are
    copied in pairs, too. Tiles of a single row are for other instructions: if there are any, there
    are no others, and nothing is in pairs."""

    vectors: int
    rows: int
    steps: int = 0
    rows_in_pairs: bool = False


def matrix_tiles(
    spec: ContractionSpec, facts: TargetFacts, lanes: int, k: tuple[KDim, ...], k_block: int
) -> MatrixTiles | None:
    """None where there is no such instruction, or too few rows or steps for it."""
    total = static_product([dim.extent for dim in spec.rows])
    last = k[-1].extent
    few = (total is not None and total < _LEAST_ROWS) or (isinstance(last, int) and last < LANES)
    if spec.dtype not in facts.matrices or lanes != LANES or k[-1].a_stride != 1 or few:
        return None
    steps = _paired_steps(spec, k, k_block)
    copied = steps > 0 and len(k) == 1
    best, chosen = 0.0, MatrixTiles(1, 2)
    for vectors in range(1, spec.panel // lanes + 1):
        rows = _most_rows(facts.registers(spec.dtype), vectors, copied)
        if (spec.panel // lanes) % vectors or rows < 2:
            continue
        rows = min(rows, total or rows)
        made = (0 if copied else rows) + (0 if steps else lanes * vectors)
        share = rows * vectors / (4 * made + rows + lanes * vectors)
        if share > best:
            best, chosen = share, MatrixTiles(vectors, rows, steps, copied)
    return chosen


def _most_rows(registers: int, vectors: int, copied: bool) -> int:
    """Rows, an even number, beside which there is room for what is loaded."""
    if copied:
        return (registers - 4) * 2 // (2 * vectors + 1) // 2 * 2
    return (registers - 4) // (vectors + 1) // 2 * 2


def _paired_steps(spec: ContractionSpec, k: tuple[KDim, ...], k_block: int) -> int:
    """Steps of B in pairs: whole vectors of A."""
    last = k[-1].extent
    whole = isinstance(last, int) and last % LANES == 0
    return shared_steps(spec, k, k_block) if whole else 0


def shared_steps(spec: ContractionSpec, k: tuple[KDim, ...], k_block: int) -> int:
    """Steps of B that are worth a copy in another form, 0 for none: a known number of them, for
    enough rows; of which no tile, where there are several, has a single one."""
    steps = static_product([k_block or k[0].extent, *(dim.extent for dim in k[1:])])
    if steps is None:
        return 0
    if len(spec.rows) == 1:
        extent = spec.rows[0].extent
        return steps if not isinstance(extent, int) or extent >= _LEAST_PAIRED_ROWS else 0
    known = [dim.extent for dim in spec.rows[-2:]]
    area = static_product(known)
    return steps if area is not None and area >= _LEAST_PAIRED_ROWS else 0


def paired_bytes(tiles: MatrixTiles | None, dtype: str) -> int:
    """Bytes that pairs of columns take for one column of tiles."""
    return prod((tiles.steps, tiles.vectors, LANES, dtype_bits(dtype) // 8)) if tiles else 0
