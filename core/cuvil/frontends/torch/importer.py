"""fx graphs of ATen operators to the `cuvil` dialect, node by node.

A node is served by the record of its overload in `cuvil.ops.aten`. What torch says of a node's
value (its type, with sizes as guards have them) is what the record's result must be.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from cuvil.errors import Error, UnsupportedError, internal_error
from cuvil.frontends.torch.call import NOT_GIVEN, Call, Sizes, settled
from cuvil.frontends.torch.constants import constant_value
from cuvil.frontends.torch.dims import bounds_of, dim_of, least_of
from cuvil.frontends.torch.signature import Signature, is_size, signature_of, value_of
from cuvil.frontends.torch.source import location_of, where_of
from cuvil.frontends.torch.types import element_of, tensor_type_of
from cuvil.ir.build import Builder
from cuvil.ir.dead import drop_dead
from cuvil.ir.dims import Dim, SymDim, symbol
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.names import Value
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.ops.aten.registry import find

__all__ = ["Problem", "import_fx"]

_NOTHING = {
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
}


@dataclass(frozen=True)
class Problem:
    """A node that has no place in compiled code, and why. where: node, operator, line."""

    node: Node
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


def import_fx(
    module: GraphModule,
    *,
    constants: Mapping[str, torch.Tensor] | None = None,
    name: str = "torch_graph",
    problems: list[Problem] | None = None,
) -> Graph:
    """The graph of a module of ATen calls whose nodes have `meta["val"]`.

    constants: placeholder -> its value, which becomes a constant (no copy: nobody may write to it
    while the graph lives). Inputs and outputs are those of `signature_of(module, constants)`.
    problems: is told of every node that is not supported, instead of raising; the graph that comes
    back is then good for nothing unless the list is empty.

    UnsupportedError for what is not implemented, naming node, operator and the user's line.
    """
    known = constants or {}
    importer = _Importer(module, signature_of(module, known), known, name, problems)
    return importer.run()


class _Importer:
    def __init__(
        self,
        module: GraphModule,
        signature: Signature,
        constants: Mapping[str, torch.Tensor],
        name: str,
        problems: list[Problem] | None,
    ) -> None:
        self.module = module
        self.signature = signature
        self.constants = constants
        self.name = name
        self.problems = problems
        self.values: dict[Node, Any] = {}
        self.sizes = Sizes()
        self.bounds: dict[str, tuple[int, int | None]] = {}

    def run(self) -> Graph:
        holders = self.module.graph.find_nodes(op="placeholder")
        nodes = {i.name: holders[i.place] for i in self.signature.inputs}
        types = {i.name: self._input_type(nodes[i.name], i.axes) for i in self.signature.inputs}
        self.graph = new_graph(self.name, types, Pool())
        self.b = Builder(self.graph.block, self.graph.pool)
        for value, node in zip(self.graph.inputs, nodes.values(), strict=True):
            self.values[node] = value
        self.sizes.known.update(self.graph.symbols())
        for port, node in zip(self.signature.inputs, nodes.values(), strict=True):
            self._bind(node)
            if port.axes:
                back = [port.axes.index(k) for k in range(len(port.axes))]
                self.values[node] = self.b.transpose(self.values[node], perm=back)
        for node in self.module.graph.nodes:
            self._guarded(node)
        outputs = self._outputs()
        finish_graph(self.graph, outputs)
        self.graph.bounds.update(self.bounds)
        drop_dead(self.graph.block)
        return self.graph

    def _input_type(self, node: Node, axes: Sequence[int]) -> TensorType:
        value = value_of(node)
        if is_size(value):
            return TensorType.of((), "i64")
        for extent in value.shape:
            self.bounds.update(bounds_of(extent))
        with self._errors(where_of(node, self.name)):
            kind = tensor_type_of(value)
        return kind.with_dims(kind.dims[k] for k in axes) if axes else kind

    def _bind(self, node: Node) -> None:
        """A size that the caller passes, as the symbol that it stands for."""
        value = value_of(node)
        if not is_size(value):
            return
        size = dim_of(value)
        if not isinstance(size, SymDim) or size != symbol(str(size)):
            raise UnsupportedError(f"{where_of(node, self.name)}: the size {size} is no symbol")
        _, most = bounds_of(value).get(str(size), (0, None))
        least = least_of(value)
        self.b.emit("bind", [self.values[node]], symbol=str(size), least=least, most=most)
        self.bounds[str(size)] = (least, most)
        self.sizes.known.add(str(size))
        self.values[node] = size

    def _guarded(self, node: Node) -> None:
        if self.problems is None:
            self._node(node)
            return
        try:
            self._node(node)
        except Error as error:
            self.values[node] = self._stand_in(value_of(node))
            if is_size(value_of(node)):
                self.sizes.known.update(self.sizes.missing([dim_of(value_of(node))]))
                self.values[node] = dim_of(value_of(node))
            where = where_of(node, self.name)
            reason = str(error).removeprefix(f"{where}: ")
            self.problems.append(Problem(node, where, reason))

    def _stand_in(self, value: Any) -> Any:
        """Something of a value's type, so that what reads it can be tried; or NOT_GIVEN."""
        if isinstance(value, list | tuple):
            return tuple(map(self._stand_in, value))
        if not isinstance(value, torch.Tensor):
            return NOT_GIVEN
        try:
            kind = tensor_type_of(value)
        except UnsupportedError:
            return NOT_GIVEN
        self.sizes.known.update(self.sizes.missing(kind.dims))  # then inputs of what follows
        return self.b.broadcast(self.b.scalar(0, kind.dtype.name), dims=kind.dims)

    def _node(self, node: Node) -> None:
        if node in self.values or node.op == "output":
            return
        where = where_of(node, self.name)
        with self._errors(where), self.b.at(location_of(node)):
            if node.op == "placeholder":
                self.values[node] = self._placeholder(node)
            elif node.op == "get_attr":
                self.values[node] = self._attribute(node)
            elif node.op == "call_function":
                self.values[node] = self._call(node, where)
            else:
                raise UnsupportedError(f"{where}: {node.op} is no call of an ATen operator")

    def _placeholder(self, node: Node) -> Any:
        found = self.constants.get(node.name)
        value = value_of(node) if found is None else found
        if found is not None:
            return constant_value(self.b, found)
        if is_size(value):
            self.bounds.update(bounds_of(value))
            return dim_of(value)
        return value if value is None or isinstance(value, bool | float | str) else NOT_GIVEN

    def _attribute(self, node: Node) -> Any:
        found = operator.attrgetter(str(node.target))(self.module)
        return constant_value(self.b, found) if isinstance(found, torch.Tensor) else found

    def _call(self, node: Node, where: str) -> Any:
        known = value_of(node)
        name = str(node.target)
        if is_size(known):
            return self._size(node, where, name)
        if name in _NOTHING:
            return None
        if isinstance(known, torch.SymBool):
            return NOT_GIVEN  # read by assertions
        args = [self._argument(a) for a in node.args]
        if node.target is operator.getitem:
            args = [args[0][args[1]]]
        keywords = {k: self._argument(a) for k, a in node.kwargs.items()}
        if any(v is NOT_GIVEN for v in tree_leaves((args, keywords))):
            raise UnsupportedError(f"{where}: an operand is of a type that is not supported")
        if node.target is operator.getitem:
            return args[0]
        compose = find(name)
        if compose is None:
            raise UnsupportedError(f"{where}: {self._unknown(node)}")
        cx = Call(self.b, where, node, self.sizes)
        found = compose(cx, *args, **keywords)
        return settled(cx, found)

    def _size(self, node: Node, where: str, name: str) -> Dim:
        """A size: an expression of those that are known, or an element of a tensor."""
        size = dim_of(value_of(node))
        missing = self.sizes.missing([size])
        if not missing:
            return size
        if name != "aten._local_scalar_dense.default" or least_of(value_of(node)) < 0:
            raise UnsupportedError(
                f"{where}: a number that depends on data ({', '.join(sorted(missing))}) and is "
                "not known to be a size: torch._check(n >= 0) says so"
            )
        value = self._argument(node.args[0])
        scalar = self.b.reshape(self.b.cast(value, to="i64"), dims=())
        self.bounds.update(bounds_of(value_of(node)))
        most = bounds_of(value_of(node))[str(size)][1]
        return Call(self.b, where, node, self.sizes).bind_to(scalar, size, most)

    @staticmethod
    def _unknown(node: Node) -> str:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return "control flow and other higher-order operators are not supported"
        if isinstance(node.target, torch._ops.OpOverload):
            return "the operator is not supported"
        return "a call that is no ATen operator is not supported"

    def _argument(self, argument: Any) -> Any:
        """An argument as records take it."""
        if isinstance(argument, Node):
            return self.values[argument]
        if isinstance(argument, list | tuple):
            return [self._argument(a) for a in argument]
        if isinstance(argument, torch.dtype):
            return element_of(argument)
        if isinstance(argument, torch.SymInt):
            return dim_of(argument)
        if argument is None or isinstance(argument, bool | int | float | str):
            return argument
        if isinstance(argument, torch.device | torch.layout | torch.memory_format):
            return None
        raise UnsupportedError(f"an argument is {argument!r}")

    def _outputs(self) -> dict[str, Value]:
        (last,) = self.module.graph.find_nodes(op="output")
        outputs = {}
        for leaf, port in zip(tree_leaves(last.args[0]), self.signature.outputs, strict=True):
            if port.kind not in ("tensor", "size"):
                continue
            value = self.values[leaf]
            if value is NOT_GIVEN:
                continue
            if not isinstance(value, Value):
                value = self.b.dims(dims=(value,), shape=(), dtype="i64")
            if port.axes:
                value = self.b.transpose(value, perm=port.axes)
            outputs[port.name] = value
        return outputs

    @contextmanager
    def _errors(self, where: str) -> Iterator[None]:
        """What does not fit is an error that names the node."""
        try:
            yield
        except UnsupportedError as error:
            if str(error).startswith(where):
                raise
            raise UnsupportedError(f"{where}: {error}") from error
        except Error:
            raise
        except ValueError as error:
            raise UnsupportedError(f"{where}: {error}") from error
        except Exception as error:
            raise internal_error(where, error) from error
