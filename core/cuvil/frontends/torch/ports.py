"""Inputs whose extents a caller can bind: bare symbols where torch has multiples of one."""

from __future__ import annotations

from collections.abc import Mapping

from cuvil.extents import Extents
from cuvil.ir.dims import Dim, SymDim, symbol, symbols
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type
from cuvil.ir.substitute import reshape_input, substituted

__all__ = ["with_plain_inputs"]


def with_plain_inputs(
    graph: Graph, env: Mapping[str, Dim], promised: Mapping[str, Extents]
) -> Graph:
    """The graph with names for torch's symbols. env: symbol of torch's -> name, or name // step.

    Where an input has 8*(seq floordiv 8) it takes seq, and a reshape says that it is the same: a
    run checks that, unless it follows from what is promised.
    """
    made = substituted(graph, env)
    declared = {name: e for name, e in promised.items() if e != Extents()}
    whole = {step * (symbol(name) // step): symbol(name)
             for name, (_, _, step) in promised.items() if step > 1}  # fmt: skip
    for number, value in enumerate(made.inputs):
        kind = tensor_type(value)
        dims = [whole.get(d, d) if isinstance(d, SymDim) else d for d in kind.dims]
        if tuple(dims) != kind.dims:
            reshape_input(made, number, dims)
    known = {s for v in made.inputs for d in tensor_type(v).dims for s in symbols(d)}
    made.declare({name: e for name, e in declared.items() if name in known})
    return made
