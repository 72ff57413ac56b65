"""Steps of a micro-kernel whose operands were loaded during the step before.

For cpus that wait where a value is used that is not there yet: a load right before its use costs
them its whole latency.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen.llvm_util import i64, repeat_guarded

Values = list[ir.Value]


@dataclass(frozen=True)
class Operands:
    """What one step reads, loaded on demand: a vector of B per column, a number of A per row."""

    column: Callable[[int], ir.Value]
    number: Callable[[int], ir.Value]


@dataclass(frozen=True)
class Step:
    """A rank-1 update. at: the operands of step k; multiply: (number of A, vector of B, sum) to the
    new sum; rows, columns: of the tile, whose sums are in row-major order."""

    rows: int
    columns: int
    at: Callable[[ir.Value], Operands]
    multiply: Callable[[ir.Value, ir.Value, ir.Value], ir.Value]


def early_steps(
    b: ir.IRBuilder, step: Step, start: ir.Value, count: ir.Value, sums: Sequence[ir.Value]
) -> Values:
    """The sums after `count` steps from `start` on; nothing is read beyond them."""

    def trip(i: ir.Value, values: Values) -> Values:
        following = step.at(b.add(b.add(start, i), i64(1)))
        numbers = [following.number(row) for row in range(step.rows)]
        columns, old, out = _split(step, values)
        fresh = []
        for c in range(step.columns):
            _multiply_column(step, c, columns[c], old, out)
            fresh.append(following.column(c))  # its register has just become free
        return [*fresh, *numbers, *out]

    def whole(_: ir.Value, values: Values) -> Values:
        first = step.at(start)
        loaded = [first.column(c) for c in range(step.columns)]
        loaded += [first.number(row) for row in range(step.rows)]
        carried = repeat_guarded(b, b.sub(count, i64(1)), [*loaded, *values], trip)
        columns, numbers, out = _split(step, carried)
        for c in range(step.columns):
            _multiply_column(step, c, columns[c], numbers, out)
        return out

    some = b.zext(b.icmp_signed(">", count, i64(0)), count.type)
    return repeat_guarded(b, some, sums, whole)


def _split(step: Step, values: Values) -> tuple[Values, Values, Values]:
    """Vectors of B, numbers of A, sums."""
    behind = step.columns + step.rows
    return values[: step.columns], values[step.columns : behind], list(values[behind:])


def _multiply_column(step: Step, c: int, column: ir.Value, numbers: Values, out: Values) -> None:
    for row, number in enumerate(numbers):
        place = row * step.columns + c
        out[place] = step.multiply(number, column, out[place])
