"""Unsigned bytes multiplied as signed ones, as what they are above 128, where no instruction
multiplies one kind by the other: x * y = (x - 128) * y + 128 * y.

The latter is the same for all rows: sums begin with it.
"""

from llvmlite import ir

from cuvil.codegen.contraction.dot import surplus
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I32,
    I64,
    PTR,
    i64,
    internal_function,
    load,
    repeat_guarded,
    store,
    vector,
    zero,
)

_CHAINS = 2  # sums per column, which hide the latency of a product


def starts_function(
    module: ir.Module, facts: TargetFacts, vectors: int, lanes: int, panel: int
) -> ir.Function:
    """void f(b, rows, starts): 128 times the sum of `rows` rows of B, for vectors*lanes columns.

    panel: pitch of B's rows, in groups.
    """
    name = f"starts.{vectors}v{lanes}p{panel}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, PTR], facts)
    matrix, rows, starts = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    kind = vector(I32, lanes)

    def add_rows(first: ir.Value, count: int, sums: list[ir.Value]) -> list[ir.Value]:
        out = list(sums)
        for step in range(count):
            row = b.mul(b.add(first, i64(step)), i64(panel))
            for v in range(vectors):
                at = step * vectors + v
                out[at] = surplus(
                    b, load(b, matrix, b.add(row, i64(v * lanes)), kind), out[at], facts
                )
        return out

    trips = b.sdiv(rows, i64(_CHAINS))
    done = b.mul(trips, i64(_CHAINS))
    sums = [zero(kind)] * (_CHAINS * vectors)
    sums = repeat_guarded(b, trips, sums, lambda i, s: add_rows(b.mul(i, i64(_CHAINS)), _CHAINS, s))
    sums = repeat_guarded(b, b.sub(rows, done), sums, lambda i, s: add_rows(b.add(done, i), 1, s))
    for v in range(vectors):
        low = b.add(sums[v], sums[vectors + v])
        store(b, b.sub(zero(kind), low), starts, i64(v * lanes))
    b.ret_void()
    return function


def fill_tile(
    b: ir.IRBuilder, tile: ir.Value, starts: ir.Value, shape: tuple[int, int, int]
) -> None:
    """Sets each row of a dense tile to `starts`. shape: rows, vectors, lanes."""
    rows, vectors, lanes = shape
    kind = vector(I32, lanes)
    values = [load(b, starts, i64(v * lanes), kind) for v in range(vectors)]
    for row in range(rows):
        for v, value in enumerate(values):
            store(b, value, tile, i64((row * vectors + v) * lanes))
