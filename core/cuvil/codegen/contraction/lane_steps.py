"""Steps of a micro-kernel that takes its numbers of A out of vectors, lane by lane.

For targets that multiply a vector by one lane of another in one instruction: a load of A then
serves as many steps as it has lanes, and nothing spreads a number over a vector.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen.llvm_util import I32, i64, repeat_guarded

Values = list[ir.Value]


@dataclass(frozen=True)
class LaneSteps:
    """A rank-1 update for each lane of a vector.

    rows, columns: of the tile, whose sums are in row-major order; there are so many for each of
    `chains`, which steps take turns to add to. lanes: of a vector of A. numbers: that vector of a
    row, from step k on; column: a vector of B at step k; multiply: (number of A in all lanes,
    vector of B, sum, which column) to the new sum. spread: (a vector of A, lane, sum) to the number
    in all lanes.
    """

    rows: int
    columns: int
    chains: int
    lanes: int
    numbers: Callable[[int, ir.Value], ir.Value]
    column: Callable[[int, ir.Value], ir.Value]
    multiply: Callable[[ir.Value, ir.Value, ir.Value, int], ir.Value]
    spread: Callable[[ir.IRBuilder, ir.Value, int, ir.Value], ir.Value]


def lane_steps(
    b: ir.IRBuilder, steps: LaneSteps, start: ir.Value, trips: ir.Value, sums: Sequence[ir.Value]
) -> Values:
    """The sums after `trips` times `lanes` steps from `start` on."""

    def trip(i: ir.Value, values: Values) -> Values:
        first, out = b.add(start, b.mul(i, i64(steps.lanes))), list(values)
        numbers = [steps.numbers(row, first) for row in range(steps.rows)]
        for lane in range(steps.lanes):
            chain = lane % steps.chains * steps.rows * steps.columns
            for c in range(steps.columns):
                column = steps.column(c, b.add(first, i64(lane)))
                for row, vector in enumerate(numbers):
                    at = chain + row * steps.columns + c
                    number = steps.spread(b, vector, lane, out[at])
                    out[at] = steps.multiply(number, column, out[at], c)
        return out

    return repeat_guarded(b, trips, sums, trip)


def lane_of(b: ir.IRBuilder, vector: ir.Value, lane: int, total: ir.Value) -> ir.Value:
    """One lane of a vector, in all lanes of one as long as a sum; instructions that take lanes have
    groups of numbers as one number of the sum's type."""
    kind = total.type.element
    whole = b.bitcast(vector, ir.VectorType(kind, vector.type.count))
    places = ir.Constant(ir.VectorType(I32, total.type.count), [lane] * total.type.count)
    found = b.shuffle_vector(whole, ir.Constant(whole.type, ir.Undefined), places)
    return b.bitcast(found, ir.VectorType(vector.type.element, total.type.count))
