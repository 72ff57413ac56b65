"""Matrices of half floats: micro-kernels by instructions that multiply these and add the products
to floats, and a copy as floats for those that have none.

Such an instruction takes the first or the second four of eight halves of B, and one lane of eight
halves of a row of A.
"""

from collections.abc import Callable, Sequence

from llvmlite import ir

from cuvil.codegen.contraction.lane_steps import LaneSteps
from cuvil.codegen.contraction.rows_of_b import rows_function
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import HALF, I16, I32, declare, i64, load, vector
from cuvil.codegen.scalars.convert import load_convert

_WHOLE = ir.VectorType(HALF, 8)
_PART = ir.VectorType(HALF, 4)
_PARTS, LANES = 2, 4


def half_steps(
    b: ir.IRBuilder,
    shape: tuple[int, int, int],
    facts: TargetFacts,
    rows: Sequence[ir.Value],
    panel: ir.Value,
    row: Callable[[int, ir.Value], ir.Value],
) -> LaneSteps:
    """shape: rows, vectors of sums and chains of the tile. rows: of A, whose numbers lie together.
    row: where the vectors of a step begin in `panel`, as it is asked for one of them."""
    count, vectors, chains = shape

    def numbers(nth: int, k: ir.Value) -> ir.Value:
        return load(b, rows[nth], k, _WHOLE)

    def column(c: int, k: ir.Value) -> ir.Value:
        """The vector, at its place among eight halves; neighbours are loaded as one."""
        first = c - c % _PARTS
        at = b.add(row(c, k), i64(first * LANES))
        if first + 1 < vectors:
            return load(b, panel, at, _WHOLE)
        lone = load(b, panel, at, _PART)
        wide = ir.Constant(ir.VectorType(I32, 8), [*range(4), *range(4)])
        return b.shuffle_vector(lone, ir.Constant(_PART, ir.Undefined), wide)

    def multiply(number: ir.Value, right: ir.Value, total: ir.Value, c: int) -> ir.Value:
        name = facts.half_products[c % _PARTS]
        function = declare(b.module, name, total.type, [total.type, _WHOLE, _WHOLE])
        return b.call(function, [total, right, number])

    return LaneSteps(count, vectors, chains, 8, numbers, column, multiply, _lane)


def widen_columns(module: ir.Module, facts: TargetFacts, vectors: int, panel: int) -> ir.Function:
    """void f(from, rows, to): `rows` of B's rows of `vectors` vectors, as float32.

    panel: pitch of B's rows, in elements; those of the result are dense.
    """
    lanes = facts.lanes("f32")

    def widened(b: ir.IRBuilder, source: ir.Value, place: ir.Value) -> list[ir.Value]:
        halves = load(b, source, place, vector(I16, lanes))
        return [load_convert(b, halves, "f16", facts)]

    name = f"widened.{vectors}p{panel}"
    return rows_function(module, facts, name, (vectors, lanes, panel), widened)


def _lane(b: ir.IRBuilder, vector: ir.Value, lane: int, total: ir.Value) -> ir.Value:
    places = ir.Constant(ir.VectorType(I32, 8), [lane] * 8)
    return b.shuffle_vector(vector, ir.Constant(_WHOLE, ir.Undefined), places)
