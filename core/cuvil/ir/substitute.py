"""A copy of a graph in which expressions stand for symbols of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.rewriter import InsertPoint, Rewriter

from cuvil.extents import Extents
from cuvil.ir.build import Builder
from cuvil.ir.dims import Dim, SymDim, substitute, symbol
from cuvil.ir.graph import Graph
from cuvil.ir.names import Operation
from cuvil.ir.record import tensor_type
from cuvil.ir.types import DimsAttr, TensorType

__all__ = ["reshape_input", "substituted"]


def substituted(graph: Graph, env: Mapping[str, Dim]) -> Graph:
    """A copy with each symbol of `env` replaced everywhere; the pool is shared.

    What is known of a symbol goes with it where a bare symbol takes its place, and is dropped
    where a number does. The values must lie within what the graph knows of the symbols.
    """
    module = graph.module.clone()
    for op in module.walk():
        _in_op(op, env)
    made = Graph(module, graph.pool, {}, graph.groups)
    for name, (least, greatest) in graph.bounds.items():
        target = _bare(name, env)
        if target:
            made.narrow(target, least, greatest)
    declared: dict[str, Extents] = {}
    for name, extents in graph.declared.items():
        target = _bare(name, env)
        if target:
            declared[target] = extents
    made.declare(declared)
    return made


def _bare(name: str, env: Mapping[str, Dim]) -> str | None:
    """The symbol that stands for a symbol, if one does."""
    new = env.get(name, symbol(name))
    return str(new) if isinstance(new, SymDim) and new == symbol(str(new)) else None


def _in_op(op: Operation, env: Mapping[str, Dim]) -> None:
    for key, attribute in op.properties.items():
        if isinstance(attribute, DimsAttr):
            op.properties[key] = DimsAttr.new(tuple(substitute(d, env) for d in attribute.data))
    for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
        if isinstance(value.type, TensorType):
            new = value.type.with_dims(substitute(d, env) for d in value.type.dims)
            if new is not value.type:
                Rewriter.replace_value_with_new_type(value, new)


def reshape_input(graph: Graph, number: int, dims: Sequence[Dim]) -> None:
    """Gives an input other dims; a reshape at the start gives its users the ones that it had."""
    value = graph.block.args[number]
    kind = tensor_type(value)
    b = Builder(graph.block, graph.pool)
    b.point = InsertPoint.at_start(graph.block)
    with b.at(graph.input_names[number]):
        shaped = b.emit("reshape", [value], dims=kind.dims)
    value.replace_all_uses_with(shaped)
    shaped.owner.operands[0] = value
    Rewriter.replace_value_with_new_type(value, kind.with_dims(dims))
