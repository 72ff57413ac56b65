"""Small constant matrices times vectors of vectors, with few operations.

Columns or rows that differ in signs only (points a and -a) are computed together.
"""

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.llvm_util import fma, splat
from cuvil.plan.templates.cook_toom import Matrix


class Transform:
    """M times a vector whose entries are SIMD vectors of floats."""

    def __init__(self, b: ir.IRBuilder, matrix: Matrix, fused: bool) -> None:
        self.b, self.fused = b, fused
        self.rows = [[float(x) for x in row] for row in matrix]
        self.columns = _pairs(list(map(list, zip(*self.rows, strict=True))))
        self.row_pairs = [] if self.columns else _pairs(self.rows)

    def apply(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """One value per row of the matrix."""
        if self.columns:
            return self._by_columns(values)
        found: dict[int, ir.Value] = {}
        for i, j in self.row_pairs:
            even = [x if x == y else 0.0 for x, y in zip(self.rows[i], self.rows[j], strict=True)]
            odd = [x if x != y else 0.0 for x, y in zip(self.rows[i], self.rows[j], strict=True)]
            same, other = self._sum(even, values), self._sum(odd, values)
            found[i], found[j] = self.b.fadd(same, other), self.b.fsub(same, other)
        return [
            found[i] if i in found else self._sum(row, values) for i, row in enumerate(self.rows)
        ]

    def _by_columns(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Sums and differences of paired values first; a row needs one of the two."""
        plus = {i: self.b.fadd(values[i], values[j]) for i, j in self.columns}
        minus = {i: self.b.fsub(values[i], values[j]) for i, j in self.columns}
        second = {j for _, j in self.columns}
        result = []
        for row in self.rows:
            chosen = list(values)
            left = list(row)
            for i, j in self.columns:
                chosen[i] = plus[i] if row[i] == row[j] else minus[i]
            for j in second:
                left[j] = 0.0
            result.append(self._sum(left, chosen))
        return result

    def _sum(self, row: Sequence[float], values: Sequence[ir.Value]) -> ir.Value:
        """The sum of factor * value, terms of factor 1 first."""
        terms = sorted(((f, v) for f, v in zip(row, values, strict=True) if f), key=_is_unit)
        total: ir.Value | None = None
        for factor, value in terms:
            total = self._added(total, factor, value)
        assert total is not None
        return total

    def _added(self, total: ir.Value | None, factor: float, value: ir.Value) -> ir.Value:
        if total is not None and factor in (1.0, -1.0):
            return self.b.fadd(total, value) if factor > 0 else self.b.fsub(total, value)
        if factor == 1.0:
            return value
        number = _filled(self.b, factor, value.type)
        if total is None:
            return self.b.fmul(number, value)
        return fma(self.b, number, value, total, self.fused)


def _is_unit(term: tuple[float, ir.Value]) -> bool:
    return term[0] != 1.0


def _filled(b: ir.IRBuilder, number: float, kind: ir.Type) -> ir.Value:
    lanes = kind.count if isinstance(kind, ir.VectorType) else 1
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    return splat(b, ir.Constant(element, number), lanes)


def _pairs(lines: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Lines that are equal up to signs, not all of them equal, nor all opposite."""
    found: list[tuple[int, int]] = []
    taken: set[int] = set()
    for i, x in enumerate(lines):
        for j in range(i + 1, len(lines)):
            signs = {a == b for a, b in zip(x, lines[j], strict=True) if a or b}
            alike = all(abs(a) == abs(b) for a, b in zip(x, lines[j], strict=True))
            if alike and len(signs) == 2 and not {i, j} & taken:
                found.append((i, j))
                taken |= {i, j}
    return found
