"""Sums of products along rows of both operands: tile[row, column] = A[row, :] * B[column, :].

Vectors run along the sum, with one of sums for each row and column; their lanes are added up after
at most `_CHUNK` steps, and what no whole vector holds is multiplied one by one.
"""

from llvmlite import ir

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    F32,
    I64,
    PTR,
    address,
    declare,
    fma,
    i64,
    internal_function,
    load,
    mangled,
    repeat_guarded,
    store,
    vector,
    zero,
)

_CHUNK = 256  # vectors that one chain of roundings adds up


def columns_function(
    module: ir.Module, facts: TargetFacts, rows: tuple[int, int], columns: int
) -> ir.Function:
    """The module's function for a tile of so many rows (outer, inner) and columns, float32.

    void f(a, b, tile, row stride 0, row stride 1, column stride, k): numbers of a row and of a
    column lie together. tile is dense [rows][columns]. k may be zero: so are the sums.
    """
    name = f"columns.{rows[0]}x{rows[1]}x{columns}v{facts.lanes('f32')}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR] * 3 + [I64] * 4, facts)
    for pointer in function.args[:3]:
        pointer.add_attribute("noalias")
    _Emitter(function, facts, rows, columns).emit()
    return function


class _Emitter:
    def __init__(
        self, function: ir.Function, facts: TargetFacts, rows: tuple[int, int], columns: int
    ) -> None:
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.facts, self.lanes = facts, facts.lanes("f32")
        self.kind = vector(F32, self.lanes)
        a, matrix, self.tile, outer, inner, step, self.k = function.args
        b = self.b
        self.rows = [
            address(b, a, b.add(b.mul(outer, i64(i)), b.mul(inner, i64(j))), F32)
            for i in range(rows[0])
            for j in range(rows[1])
        ]
        self.columns = [address(b, matrix, b.mul(step, i64(c)), F32) for c in range(columns)]

    def emit(self) -> None:
        """Pieces of whole vectors, then single numbers, then the tile."""
        b = self.b
        count = len(self.rows) * len(self.columns)
        whole = b.sdiv(self.k, i64(self.lanes))
        pieces = b.sdiv(b.add(whole, i64(_CHUNK - 1)), i64(_CHUNK))
        totals = repeat_guarded(
            b, pieces, [zero(F32)] * count, lambda i, totals: self._piece(i, whole, totals)
        )
        done = b.mul(whole, i64(self.lanes))
        totals = repeat_guarded(
            b, b.sub(self.k, done), totals, lambda i, v: self._step(b.add(done, i), F32, v)
        )
        for place, total in enumerate(totals):
            store(b, total, self.tile, i64(place))
        b.ret_void()

    def _piece(self, nth: ir.Value, whole: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
        b = self.b
        first = b.mul(nth, i64(_CHUNK))
        left = b.sub(whole, first)
        steps = b.select(b.icmp_signed("<", left, i64(_CHUNK)), left, i64(_CHUNK))

        def step(i: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self._step(b.mul(b.add(first, i), i64(self.lanes)), self.kind, sums)

        sums = repeat_guarded(b, steps, [zero(self.kind)] * len(totals), step)
        return [b.fadd(x, self._across(y)) for x, y in zip(totals, sums, strict=True)]

    def _step(self, k: ir.Value, kind: ir.Type, sums: list[ir.Value]) -> list[ir.Value]:
        """Products of the numbers at k, added to the sums."""
        b = self.b
        rows = [load(b, row, k, kind) for row in self.rows]
        out = {}
        for c, column in enumerate(self.columns):
            right = load(b, column, k, kind)
            for r, left in enumerate(rows):
                at = r * len(self.columns) + c
                out[at] = fma(b, left, right, sums[at], self.facts.fma)
        return [out[at] for at in range(len(sums))]

    def _across(self, sums: ir.Value) -> ir.Value:
        """The sum of all lanes, by halves."""
        if self.lanes == 1:
            return sums
        add = declare(
            self.b.module, f"llvm.vector.reduce.fadd.{mangled(self.kind)}", F32, [F32, self.kind]
        )
        return self.b.call(add, [ir.Constant(F32, -0.0), sums], fastmath=("reassoc",))
