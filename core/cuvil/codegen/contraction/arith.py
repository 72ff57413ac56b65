"""Sizes known now or at run time, and one arithmetic for both.

The same formula gives a number in Python (to plan and to test) and code in a kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from llvmlite import ir

from cuvil.codegen.llvm_util import I64, i64, load_invariant
from cuvil.codegen.narrow_index import mark_index


@dataclass(frozen=True)
class Slot:
    """The run-time value dims[index]."""

    index: int


Size = int | Slot


def static_product(extents: Sequence[Size]) -> int | None:
    """The product of sizes that are all known, else None."""
    known = [extent for extent in extents if isinstance(extent, int)]
    return prod(known) if len(known) == len(extents) else None


Index: TypeAlias = int | ir.Value
"""An int where known, else an i64 value."""


class Arith:
    """Arithmetic on sizes: ints fold, the rest is emitted where the builder stands.

    All operands are non-negative but for `sub`'s result. Division by zero gives 0, never a trap.
    """

    def __init__(self, b: ir.IRBuilder | None, dims: ir.Value | Sequence[int]) -> None:
        self.b: ir.IRBuilder = b  # None where all sizes are numbers
        self.dims = dims

    def size(self, size: Size) -> Index:
        """The value of a size: an int, or dims[slot]."""
        if isinstance(size, int):
            return size
        if self.b is None:
            return int(self.dims[size.index])
        return mark_index(load_invariant(self.b, self.dims, size.index, I64))

    def value(self, x: Index) -> ir.Value:
        """x as an i64 value."""
        return i64(x) if isinstance(x, int) else x

    def add(self, x: Index, y: Index) -> Index:
        """x + y."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if _is(x, 0):
            return y
        return x if _is(y, 0) else self.b.add(self.value(x), self.value(y))

    def sub(self, x: Index, y: Index) -> Index:
        """x - y."""
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        return x if _is(y, 0) else self.b.sub(self.value(x), self.value(y))

    def mul(self, x: Index, y: Index) -> Index:
        """x * y."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if _is(x, 0) or _is(y, 0):
            return 0
        if _is(x, 1):
            return y
        return x if _is(y, 1) else self.b.mul(self.value(x), self.value(y))

    def div(self, x: Index, y: Index) -> Index:
        """floor(x / y), 0 when y is 0."""
        if isinstance(x, int) and isinstance(y, int):
            return x // y if y else 0
        if _is(y, 1):
            return x
        if isinstance(y, int):
            return self.b.udiv(x, i64(y)) if y else 0
        some = self.b.icmp_signed(">", y, i64(0))
        quotient = self.b.udiv(self.value(x), self.b.select(some, y, i64(1)))
        return self.b.select(some, quotient, i64(0))

    def mod(self, x: Index, y: Index) -> Index:
        """x - y*floor(x / y), 0 when y is 0."""
        if _is(y, 1) or _is(y, 0):
            return 0
        if isinstance(x, int) and isinstance(y, int):
            return x % y
        return self.sub(x, self.mul(self.div(x, y), y))

    def ceil_div(self, x: Index, y: Index) -> Index:
        """ceil(x / y), 0 when y is 0."""
        return self.div(self.add(x, self.sub(y, 1)), y) if not _is(y, 0) else 0

    def minimum(self, x: Index, y: Index) -> Index:
        """The smaller of two."""
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        x, y = self.value(x), self.value(y)
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def maximum(self, x: Index, y: Index) -> Index:
        """The larger of two."""
        if isinstance(x, int) and isinstance(y, int):
            return max(x, y)
        x, y = self.value(x), self.value(y)
        return self.b.select(self.b.icmp_signed(">", x, y), x, y)

    def less(self, x: Index, y: Index) -> Index:
        """1 when x < y, else 0."""
        if isinstance(x, int) and isinstance(y, int):
            return int(x < y)
        return self.b.zext(self.b.icmp_signed("<", self.value(x), self.value(y)), I64)

    def choose(self, condition: Index, x: Index, y: Index) -> Index:
        """x when the condition is 1, y when it is 0."""
        if isinstance(condition, int):
            return x if condition else y
        truth = self.b.icmp_signed("!=", condition, i64(0))
        return self.b.select(truth, self.value(x), self.value(y))

    def product(self, factors: Sequence[Index]) -> Index:
        """The product of all factors, 1 of none."""
        result: Index = 1
        for factor in factors:
            result = self.mul(result, factor)
        return result

    def dot(self, xs: Sequence[Index], ys: Sequence[Index]) -> Index:
        """sum of x * y."""
        total: Index = 0
        for x, y in zip(xs, ys, strict=True):
            total = self.add(total, self.mul(x, y))
        return total


def _is(x: Index, number: int) -> bool:
    return isinstance(x, int) and x == number
