"""Steps of a micro-kernel by instructions that multiply small matrices.

Such an instruction takes two rows of two groups from each side and adds to the 2x2 sums of rows of
the left by rows of the right: a pair of A's rows by a pair of B's columns. Vectors of B, which are
a group of each of four columns, become two pairs of columns by interleaving those of two steps: in
registers, or once for all tiles that read them (`pair_columns`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen.contraction.rows_of_b import rows_function
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I32,
    I64,
    PTR,
    address,
    for_range,
    i64,
    internal_function,
    load,
    repeat_guarded,
    store,
    zero,
)

Values = list[ir.Value]
LANES = 4  # groups of a vector, columns of one of B


@dataclass(frozen=True)
class MatrixOperands:
    """What was laid out in pairs beforehand: columns of B by `pair_columns`, rows of A by
    `pair_rows`, which then are given by their tile's first one; the latter not without the
    former."""

    columns: bool = False
    rows: bool = False


@dataclass(frozen=True)
class MatrixSteps:
    """A rank-1 update of all sums, two or more steps at a time.

    rows, columns: of the tile, the latter in vectors; there are sums for each of `chains`, which
    pairs of steps take turns to add to. numbers: a vector of A's groups of a row, from step k on,
    or of a pair of rows, two groups of each; number: one of a row; column: a vector of B at step k,
    or a pair of columns, the second one at step k + 1; multiply: (rows of A, columns of B, sum) to
    the new sum.
    """

    rows: int
    columns: int
    chains: int
    numbers: Callable[[int, ir.Value], ir.Value]
    number: Callable[[int, ir.Value], ir.Value]
    column: Callable[[int, ir.Value], ir.Value]
    multiply: Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
    paired: MatrixOperands

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Rows that are multiplied together; the last one with itself where their count is odd."""
        return [(row, min(row + 1, self.rows - 1)) for row in range(0, self.rows, 2)]


def count_of(rows: int, columns: int) -> int:
    """Vectors that the sums of a tile take."""
    return -(-rows // 2) * 2 * columns


def matrix_steps(
    b: ir.IRBuilder,
    steps: MatrixSteps,
    start: ir.Value,
    count: ir.Value,
    sums: Sequence[ir.Value],
) -> Values:
    """The sums after `count` steps from `start` on, a multiple of `LANES` where columns are paired;
    nothing is read beyond them."""

    def whole(i: ir.Value, values: Values) -> Values:
        return _four(b, steps, b.add(start, b.mul(i, i64(LANES))), values)

    trips = b.sdiv(count, i64(LANES))
    sums = repeat_guarded(b, trips, sums, whole)
    if steps.paired.columns:
        return sums
    done = b.mul(trips, i64(LANES))
    rest = b.add(start, done)
    return repeat_guarded(
        b, b.sub(count, done), sums, lambda i, v: _one(b, steps, b.add(rest, i), v)
    )


def _four(b: ir.IRBuilder, steps: MatrixSteps, first: ir.Value, values: Values) -> Values:
    lefts: list[tuple[ir.Value, ir.Value]] = []
    if not steps.paired.rows:
        rows = [steps.numbers(row, first) for row in range(steps.rows)]
        lefts = [_halves(b, rows[i], rows[j]) for i, j in steps.pairs]
    for part in range(LANES // 2):
        k = b.add(first, i64(2 * part))
        chain = part % steps.chains
        left = [halves[part] for halves in lefts]
        if steps.paired.rows:
            left = [steps.numbers(pair, k) for pair in range(len(steps.pairs))]
        for c in range(steps.columns):
            rights = steps.column(c, k), steps.column(c, b.add(k, i64(1)))
            if not steps.paired.columns:
                rights = _interleaved(b, *rights)
            values = _multiply(steps, left, rights, c, chain, values)
    return values


def _one(b: ir.IRBuilder, steps: MatrixSteps, k: ir.Value, values: Values) -> Values:
    """The second group of every row, and of every column, is zero."""
    left = []
    for pair in steps.pairs:
        vector = zero(ir.VectorType(I32, LANES))
        for place, row in zip((0, 2), pair, strict=True):
            vector = b.insert_element(vector, steps.number(row, k), ir.Constant(I32, place))
        left.append(vector)
    for c in range(steps.columns):
        column = steps.column(c, k)
        rights = _interleaved(b, column, zero(column.type))
        values = _multiply(steps, left, rights, c, 0, values)
    return values


def _multiply(
    steps: MatrixSteps,
    left: Values,
    rights: tuple[ir.Value, ir.Value],
    column: int,
    chain: int,
    values: Values,
) -> Values:
    out = list(values)
    first = chain * count_of(steps.rows, steps.columns)
    for half, right in enumerate(rights):
        for pair, rows in enumerate(left):
            at = first + (pair * steps.columns + column) * 2 + half
            out[at] = steps.multiply(rows, right, out[at])
    return out


def pair_columns(module: ir.Module, facts: TargetFacts, vectors: int, panel: int) -> ir.Function:
    """void f(from, rows, to): `rows`, an even number, of B's rows of `vectors` vectors, as pairs.

    panel: pitch of B's rows, in groups; those of the result are dense: the first pair of columns of
    each vector where the first row has the vector, the second where the second has it.
    """
    kind = ir.VectorType(I32, LANES)

    def paired(b: ir.IRBuilder, source: ir.Value, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        rows = [load(b, source, b.add(place, i64(step * panel)), kind) for step in (0, 1)]
        return _interleaved(b, *rows)

    name = f"pairs.{vectors}p{panel}"
    return rows_function(module, facts, name, (vectors, LANES, panel), paired, together=2)


def pair_rows(module: ir.Module, facts: TargetFacts, align: int) -> ir.Function:
    """void f(from, to, outer, inner, outer stride, inner stride, columns, pitch): rows (i, j), two
    after another, go to to[pair * 2 * pitch]: two groups of each in turn.

    columns: a multiple of `LANES`. align: of A, in bytes. The last of an odd number of rows goes
    with itself. All but pointers count groups.
    """
    name = f"pack.pairs.{align}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, PTR] + [I64] * 6, facts)
    for pointer in function.args[:2]:
        pointer.add_attribute("noalias")
    source, target, outer, inner, outer_stride, inner_stride, columns, pitch = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    kind, count = ir.VectorType(I32, LANES), b.mul(outer, inner)

    def row(number: ir.Value) -> ir.Value:
        i = b.udiv(number, inner)
        j = b.sub(number, b.mul(i, inner))
        place = b.add(b.mul(i, outer_stride), b.mul(j, inner_stride))
        return address(b, source, place, I32)

    with for_range(b, i64(0), count, i64(2)) as first:
        second = b.add(first, i64(1))
        second = b.select(b.icmp_signed("<", second, count), second, first)
        rows = row(first), row(second)
        pair = address(b, target, b.mul(first, pitch), I32)
        with for_range(b, i64(0), columns, i64(LANES)) as k:
            halves = _halves(b, *(load(b, each, k, kind, align) for each in rows))
            for part, value in enumerate(halves):
                store(b, value, pair, b.add(b.mul(k, i64(2)), i64(part * LANES)))
    b.ret_void()
    return function


def sums_of(b: ir.IRBuilder, tile: Sequence[ir.Value], rows: int, columns: int) -> Values:
    """The sums of a tile that is given by rows of vectors."""
    found: Values = []
    for row in range(0, rows, 2):
        other = min(row + 1, rows - 1)
        for c in range(columns):
            found += _halves(b, tile[row * columns + c], tile[other * columns + c])
    return found


def tile_of(b: ir.IRBuilder, sums: Sequence[ir.Value], rows: int, columns: int) -> Values:
    """The other way round."""
    found: Values = []
    for row in range(0, rows, 2):
        at = row * columns
        pairs = [_halves(b, sums[at + 2 * c], sums[at + 2 * c + 1]) for c in range(columns)]
        found += [upper for upper, _ in pairs]
        found += [lower for _, lower in pairs] if row + 1 < rows else []
    return found


def _halves(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The first halves of two vectors in one, and the second ones: these before, since the former
    can then take the place of x."""
    second = _chosen(b, x, y, (2, 3, 6, 7))
    return _chosen(b, x, y, (0, 1, 4, 5)), second


def _interleaved(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Elements of two vectors in turn."""
    return _chosen(b, x, y, (0, 4, 1, 5)), _chosen(b, x, y, (2, 6, 3, 7))


def _chosen(b: ir.IRBuilder, x: ir.Value, y: ir.Value, places: Sequence[int]) -> ir.Value:
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, LANES), list(places)))
