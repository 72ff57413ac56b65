"""A graph: named tensors in, named tensors out, SSA between, with the constants it refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from cuvil.extents import Extents
from cuvil.ir.dims import symbols
from cuvil.ir.groups import Groups
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType


@irdl_op_definition
class GraphOp(IRDLOperation):
    """`cuvil.graph`: one function of tensors; inputs are the block's arguments."""

    name = "cuvil.graph"
    sym_name = prop_def(StringAttr)
    input_names = prop_def(ArrayAttr[StringAttr])
    output_names = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator())

    def verify_(self) -> None:
        last = self.body.block.last_op
        if not isinstance(last, ReturnOp):
            raise VerifyException("cuvil.graph must end with cuvil.return")
        if len(self.input_names.data) != len(self.body.block.args):
            raise VerifyException("cuvil.graph: input_names does not match the arguments")
        if len(self.output_names.data) != len(last.operands):
            raise VerifyException("cuvil.graph: output_names does not match cuvil.return")


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """`cuvil.return`: the graph's outputs, in order."""

    name = "cuvil.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator())


@irdl_op_definition
class YieldOp(IRDLOperation):
    """`cuvil.yield`: the results of a region of `cuvil.if`, `cuvil.loop`, ..."""

    name = "cuvil.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())


@dataclass
class Graph:
    """A graph under compilation: the module, the constants, what is known of its symbols.

    bounds: symbol -> (least, greatest or None); a symbol not listed is >= 0. declared: what a
    caller promises of inputs' symbols, and bounds keep to. groups: what a caller
    sees of inputs and outputs where some are no plain tensors; None: they are.
    """

    module: ModuleOp
    pool: Pool
    bounds: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    groups: Groups | None = None
    declared: dict[str, Extents] = field(default_factory=dict)

    def narrow(self, name: str, least: int, greatest: int | None) -> None:
        """Lets a symbol be in this range only, beside what is known of it."""
        low, high = self.bounds.get(name, (0, None))
        tops = [v for v in (high, greatest) if v is not None]
        bounds = (max(low, least), min(tops) if tops else None)
        if bounds != (0, None):
            self.bounds[name] = bounds

    def declare(self, declared: Mapping[str, Extents]) -> None:
        """Takes over what a caller promises."""
        self.declared.update(declared)
        for name, extents in declared.items():
            self.narrow(name, extents.least, extents.greatest)

    @property
    def op(self) -> GraphOp:
        first = self.module.body.block.first_op
        assert isinstance(first, GraphOp)
        return first

    @property
    def block(self) -> Block:
        return self.op.body.block

    @property
    def name(self) -> str:
        return self.op.sym_name.data

    @property
    def inputs(self) -> Sequence[SSAValue]:
        return self.block.args

    @property
    def outputs(self) -> Sequence[SSAValue]:
        last = self.block.last_op
        assert last is not None
        return last.operands

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(s.data for s in self.op.input_names.data)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(s.data for s in self.op.output_names.data)

    def symbols(self) -> tuple[str, ...]:
        """Symbols of the inputs' dims, by first use: the order in which a caller binds them."""
        seen: dict[str, None] = {}
        for value in self.inputs:
            for dim in tensor_type(value).dims:
                seen.update(dict.fromkeys(symbols(dim)))
        return tuple(seen)

    def ops(self) -> Iterator[Operation]:
        """Every operation of the body, nested regions included, in order."""
        return self.op.body.walk()


def new_graph(
    name: str, inputs: Mapping[str, TensorType], pool: Pool, output_names: Sequence[str] = ()
) -> Graph:
    """An empty graph with these inputs; finish it with `finish_graph`."""
    op = GraphOp.create(
        properties={
            "sym_name": StringAttr(name),
            "input_names": ArrayAttr([StringAttr(n) for n in inputs]),
            "output_names": ArrayAttr([StringAttr(n) for n in output_names]),
        },
        regions=[Region(Block(arg_types=list(inputs.values())))],
    )
    for arg, hint in zip(op.regions[0].block.args, inputs, strict=True):
        arg.name_hint = hint if hint.isidentifier() else None
    return Graph(ModuleOp([op]), pool)


def finish_graph(graph: Graph, outputs: Mapping[str, SSAValue]) -> Graph:
    """Sets the outputs of a graph whose body is complete."""
    graph.op.properties["output_names"] = ArrayAttr([StringAttr(n) for n in outputs])
    graph.block.add_op(ReturnOp.create(operands=list(outputs.values())))
    return graph
