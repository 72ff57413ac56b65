"""Copies of B's rows, made once for all tiles that read them."""

from collections.abc import Callable, Sequence

from llvmlite import ir

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import I64, PTR, for_range, i64, internal_function, store

Vectors = Callable[[ir.IRBuilder, ir.Value, ir.Value], Sequence[ir.Value]]


def rows_function(
    module: ir.Module,
    facts: TargetFacts,
    name: str,
    shape: tuple[int, int, int],
    taken: Vectors,
    together: int = 1,
) -> ir.Function:
    """The module's function of that name, made at its first use.

    void f(from, rows, to): `rows` of B's rows, a multiple of `together`, which are taken so many at
    a time. shape: vectors of a row, lanes of a vector, and pitch of B's rows; those of the result
    are dense. taken: (builder, from, place of a vector in the first row taken) to what stands there
    in the result, a vector for each row.
    """
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, PTR], facts)
    for pointer in (function.args[0], function.args[2]):
        pointer.add_attribute("noalias")
    source, rows, target = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    vectors, lanes, pitch = shape
    width = vectors * lanes
    with for_range(b, i64(0), rows, i64(together)) as row:
        read, write = b.mul(row, i64(pitch)), b.mul(row, i64(width))
        for v in range(vectors):
            place = b.add(read, i64(v * lanes))
            for step, value in enumerate(taken(b, source, place)):
                store(b, value, target, b.add(write, i64(step * width + v * lanes)))
    b.ret_void()
    return function
