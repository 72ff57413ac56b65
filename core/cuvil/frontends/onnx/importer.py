"""ONNX graphs to the `cuvil` dialect, node by node, functions and subgraphs inlined.

A node is served, in this order, by a function of the model, by a record of `cuvil.ops.onnx`, or
by the function body of ONNX's own schema. Whatever a file can get wrong is a ModelError that names
file, node and reason; what is right but not implemented is an UnsupportedError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from cuvil.errors import (
    Error,
    ModelError,
    ShapeMismatchError,
    UnsupportedError,
    internal_error,
)
from cuvil.extents import Extents
from cuvil.frontends.onnx.assumptions import least_symbol, widest
from cuvil.frontends.onnx.attributes import arguments, check_sequences, plain, resolved
from cuvil.frontends.onnx.builder import FoldingBuilder
from cuvil.frontends.onnx.context import NodeCx
from cuvil.frontends.onnx.equal import Equalities
from cuvil.frontends.onnx.functions import schema_function
from cuvil.frontends.onnx.opener import OpenedModel
from cuvil.frontends.onnx.shapes import Symbols
from cuvil.frontends.onnx.weights import constant_key, constant_texts
from cuvil.ir.dims import Dim, SymDim, bounds, symbol, symbols
from cuvil.ir.dims_upper import Top
from cuvil.ir.graph import Graph
from cuvil.ir.names import Block, Operation, Region, Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.ops.custom.registry import find_operator, hint
from cuvil.ops.onnx.registry import OnnxOp

__all__ = ["POISON", "DataDependentError", "Frame", "Importer", "domain_of"]

MAX_DEPTH = 48  # of functions and subgraphs inside each other
MAX_NODES = 500_000  # after inlining: functions that call functions twice grow exponentially

OnUnsupported = Callable[["Frame", ir.Node, UnsupportedError], None]


class DataDependentError(UnsupportedError):
    """A shape or axis that must be known at compile time depends on `inputs` of the graph."""

    inputs: tuple[str, ...] = ()


class _PoisonedError(UnsupportedError):
    """A subgraph gives what an unsupported node should have given: that has been told already."""


class _Poison:
    """Stands for the outputs of a node that is not supported, while problems are collected."""


POISON = _Poison()


def domain_of(name: str) -> str:
    """The domain with ONNX's own spelled one way."""
    return "" if name == "ai.onnx" else name


@dataclass
class Frame:
    """One body being imported: the graph with its subgraphs, or one call of a function."""

    opsets: Mapping[str, int]
    attributes: Mapping[str, ir.Attr] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    values: dict[ir.Value, Any] = field(default_factory=dict)

    def opset(self, domain: str) -> int:
        """The imported version of a domain; 1 where a file forgets to say."""
        wanted = domain_of(domain)
        return next((v for d, v in self.opsets.items() if domain_of(d) == wanted), 1)

    def inside(self, name: str) -> Frame:
        """The same body, one step deeper, for messages."""
        return replace(self, path=(*self.path, name))


class Importer:
    """Imports the nodes of one model into one graph.

    on_unsupported: called instead of raising; the node's outputs are then POISON, and so are
    those of the nodes that read them.
    """

    def __init__(
        self,
        opened: OpenedModel,
        model: ir.Model,
        graph: Graph,
        names: Symbols,
        on_unsupported: OnUnsupported | None = None,
    ) -> None:
        self.opened = opened
        self.functions = {_key(*k): f for k, f in model.functions.items()}
        self.graph = graph
        self.symbols = names
        self.equalities = Equalities(graph.symbols())
        self.b = FoldingBuilder(graph.block, graph.pool, self.equalities)
        self.on_unsupported = on_unsupported
        self._nodes_left = MAX_NODES
        self._constants = Block()
        self._input_symbols = set(graph.symbols())
        self.tops: dict[str, Top] = {}  # of extents that a run finds, and of loop counters
        self.closed: set[str] = set()  # symbols of regions that are finished
        self._here: list[str] = []  # symbols bound in the current region

    def nodes(self, frame: Frame, nodes: Iterator[ir.Node] | Sequence[ir.Node]) -> None:
        """Imports nodes in order at the builder's insertion point."""
        for node in nodes:
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise ModelError(f"{self.opened.name}: more than {MAX_NODES} nodes after inlining")
            try:
                self._node(frame, node)
            except UnsupportedError as error:
                if self.on_unsupported is None:
                    raise
                if not isinstance(error, _PoisonedError):
                    self.on_unsupported(frame, node, error)
                frame.values.update(dict.fromkeys(node.outputs, POISON))

    def _node(self, frame: Frame, node: ir.Node) -> None:
        where = self.where(frame, node)
        inputs = [None if v is None else self.value(frame, v, where) for v in node.inputs]
        results = self._call(frame, node, inputs, where)
        for k, output in enumerate(node.outputs):
            if not output.name:
                continue
            if k >= len(results) or results[k] is None:
                raise UnsupportedError(f"{where}: output {k} is not supported")
            frame.values[output] = results[k]
            if isinstance(results[k], Value) and results[k].name_hint is None:
                results[k].name_hint = output.name if output.name.isidentifier() else None

    def _call(
        self, frame: Frame, node: ir.Node, inputs: Sequence[Any], where: str
    ) -> Sequence[Any]:
        attrs = resolved(node, frame.attributes)
        domain = domain_of(node.domain)
        function = self.functions.get((domain, node.op_type, node.overload))
        record = None
        if function is None:
            record = find_operator(domain, node.op_type, frame.opset(domain))
        if any(v is POISON for v in inputs) and (function or record):
            return [POISON] * len(node.outputs)
        if record is not None:
            results = self._record(frame, record, node, inputs, attrs, where)
            if results[0] is not NotImplemented:
                return results
        if function is None:
            types = [tensor_type(v) if isinstance(v, Value) else None for v in inputs]
            with self._errors(where):
                function = schema_function(node, attrs, types, frame.opset(domain))
        if function is None:
            what = hint(domain, node.op_type)
            raise UnsupportedError(
                f"{where}: the operator is not supported{f'; {what}' if what else ''}"
            )
        return self.function(frame, function, node, inputs, attrs, where)

    def _record(
        self,
        frame: Frame,
        record: OnnxOp,
        node: ir.Node,
        inputs: Sequence[Any],
        attrs: Mapping[str, ir.Attr],
        where: str,
    ) -> Sequence[Any]:
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        keywords = self._keywords(record, node, given, attrs, where)
        cx = NodeCx(self, frame, node, where)
        self.b.here = where
        with self._errors(where), self.b.at(_location(frame, node)):
            result = record.compose(cx, *given, **keywords)
        return result if isinstance(result, tuple) else (result,)

    @staticmethod
    def _keywords(
        record: OnnxOp,
        node: ir.Node,
        given: list[Any],
        attrs: Mapping[str, ir.Attr],
        where: str,
    ) -> dict[str, Any]:
        """The attributes for a record whose inputs these can be."""
        if record.accept is not None:
            outputs = sum(bool(v.name) for v in node.outputs)
            return record.accept(where, [_kind(v) for v in given], plain(attrs), outputs)
        if not record.variadic and len(given) > record.named:
            raise ModelError(f"{where}: {len(given)} inputs, the most are {record.named}")
        needed = given[: record.required] + given[record.named :]
        if len(given) < record.required or any(v is None for v in needed):
            raise ModelError(f"{where}: an input is missing, {record.required} are required")
        check_sequences(record, given, where)
        return arguments(record, attrs, where)

    def function(
        self,
        frame: Frame,
        function: ir.Function,
        node: ir.Node,
        inputs: Sequence[Any],
        attrs: Mapping[str, ir.Attr],
        where: str,
    ) -> Sequence[Any]:
        """What a function gives for a node's inputs, its nodes imported in place."""
        defaults = {k: a for k, a in function.attributes.items() if a.value is not None}
        inner = Frame(
            opsets={**frame.opsets, **function.opset_imports},
            attributes={**defaults, **attrs},
            path=(*frame.path, node.name or node.op_type),
        )
        self._check_depth(inner, where)
        if len(inputs) > len(function.inputs):
            raise ModelError(f"{where}: {len(inputs)} inputs, the function has fewer")
        padded = [*inputs, *[None] * (len(function.inputs) - len(inputs))]
        inner.values.update(zip(function.inputs, padded, strict=True))
        self.nodes(inner, function)
        return [self.value(inner, v, where, absent=True) for v in function.outputs]

    def inline(
        self, frame: Frame, body: ir.Graph, args: Sequence[Any], where: str
    ) -> tuple[Any, ...]:
        """Imports a subgraph in place, its inputs bound to `args`; gives its outputs."""
        self._check_depth(frame, where)
        if not isinstance(body, ir.Graph):
            raise ModelError(f"{where}: an attribute that has to be a graph is none")
        if len(args) != len(body.inputs):
            raise ModelError(
                f"{where}: the subgraph takes {len(body.inputs)} inputs, not {len(args)}"
            )
        frame.values.update(zip(body.inputs, args, strict=True))
        self.nodes(frame, body)
        return tuple(self.value(frame, v, where) for v in body.outputs)

    def region(
        self,
        types: Sequence[TensorType],
        build: Callable[..., Sequence[Any]],
        where: str,
    ) -> tuple[Region, tuple[TensorType, ...]]:
        """A region whose arguments have `types` and that yields what `build(*args)` gives."""
        block = Block(arg_types=list(types))
        outer, self._here = self._here, []
        with self.b.inside(block):
            results = build(*block.args)
            if any(v is POISON for v in results):
                raise _PoisonedError(f"{where}: a node of the subgraph is not supported")
            if not all(isinstance(v, Value) for v in results):
                raise UnsupportedError(f"{where}: a subgraph that gives sequences is not supported")
            self.b.yield_(*results)
        self.closed.update(self._here)
        self._here = outer
        return Region(block), tuple(tensor_type(v) for v in results)

    def extend(self, region: Region, build: Callable[[], Sequence[Value]]) -> None:
        """Makes a finished region yield what `build()` gives, too."""
        last = region.block.last_op
        assert last is not None
        values = list(last.operands)
        region.block.erase_op(last)
        outer, self._here = self._here, []
        with self.b.inside(region.block):
            self.b.yield_(*values, *build())
        self.closed.update(self._here)
        self._here = outer

    def branches(
        self, builds: Sequence[Callable[[], Sequence[Any]]], where: str
    ) -> list[tuple[Region, tuple[TensorType, ...]]]:
        """Regions of which one runs: only what all of them need of the inputs is needed."""
        outer, before = self.b.equalities, dict(self.graph.bounds)
        regions, found, bounds = [], [], []
        for build in builds:
            self.b.equalities = outer.branch()
            try:
                regions.append(self.region((), build, where))
            finally:
                found.append(self.b.equalities)
                bounds.append(dict(self.graph.bounds))
                self.b.equalities = outer
                self.graph.bounds.clear()
                self.graph.bounds.update(before)
        outer.note_common(found)
        self.graph.bounds.update(widest(bounds))
        return regions

    def value(self, frame: Frame, value: ir.Value, where: str, absent: bool = False) -> Any:
        """What a value of the file is: an SSA value, or None for an absent input of a function."""
        found = frame.values.get(value, POISON if value is None else None)
        if found is not None or (absent and value in frame.values):
            return found
        if value in frame.values:
            return None
        if value.const_value is not None:
            return frame.values.setdefault(value, self.constant(value.const_value))
        raise ModelError(f"{where}: value {value.name!r} is not defined before its use")

    def constant(self, tensor: ir.TensorProtocol, node: str = "") -> Value:
        """A constant of the file, at the top of the graph, where every region sees it."""
        texts = constant_texts(self.opened, tensor, node)
        key = "" if texts is not None else constant_key(self.opened, tensor, self.graph.pool, node)
        with self.b.inside(self._constants), self.b.at(tensor.name or node or "constant"):
            return self.b.file_constant(key) if texts is None else self.b.strings(texts)

    def place_constants(self) -> None:
        """Puts the file's constants before everything else, once all nodes are imported."""
        first = self.graph.block.first_op
        for op in list(self._constants.ops):
            op.detach()  # type: ignore[no-untyped-call]
            if first is None:
                self.graph.block.add_op(op)
            else:
                self.graph.block.insert_op_before(op, first)

    def data_dependent(self, where: str, what: str, value: Value) -> UnsupportedError:
        """The error for a value that must be known at compile time and is not.

        Its `inputs` are the graph's inputs that the value depends on: `import_model(values=...)`
        can fix them.
        """
        inputs = tuple(name for name in self.inputs_of(value) if name)
        of = f" of {', '.join(map(repr, inputs))}" if inputs else ""
        error = DataDependentError(
            f"{where}: {what} depends on input data{of}; only constants and arithmetic on shapes "
            "can be compiled"
        )
        error.inputs = inputs
        return error

    def inputs_of(self, value: Value) -> tuple[str, ...]:
        """Names of the graph's inputs (or "" for a region's) whose elements decide a value."""
        names = dict(zip(self.graph.inputs, self.graph.input_names, strict=True))
        seen: dict[Value, None] = {}
        pending = [value]
        while pending:
            current = pending.pop()
            if current not in seen:
                seen[current] = None
                if isinstance(current.owner, Operation):
                    pending.extend(current.owner.operands)
        found = {names.get(v, "") for v in seen if not isinstance(v.owner, Operation)}
        return tuple(sorted(found))

    def bound(self, hint: str, least: int, most: Dim | None) -> SymDim:
        """A fresh symbol with these bounds; `most` is of symbols that are there already."""
        new = self.symbols.fresh(hint)
        greatest = None if most is None else bounds(most, self.graph.bounds)[1]
        self.graph.bounds[str(new)] = (least, greatest)
        self.tops[str(new)] = Top(least, most)
        return new

    def bind(self, value: Value, new: SymDim) -> SymDim:
        """Binds a symbol of `bound` to the element of an i64 value."""
        top = self.tops[str(new)]
        self._here.append(str(new))
        self.b.emit("bind", [value], symbol=str(new), least=top.least, most=top.most)
        self.b.note(value, np.array(new, object).reshape([1] * tensor_type(value).rank))
        return new

    def assume(self, dim: Dim, least: int, most: int | None, where: str) -> None:
        """Narrows the bounds of a symbol of the inputs so that `dim` lies in these.

        Where `dim` is an expression, only by `least`, and only where one symbol decides it.
        ShapeMismatchError where that breaks what a caller promises.
        """
        names = symbols(dim)
        if len(names) != 1 or names[0] not in self._input_symbols:
            return
        (name,) = names
        if dim != symbol(name):
            start = least_symbol(dim, name, least)
            if start is None:
                return
            least, most = start, None
        before = self.graph.bounds.get(name, (0, None))
        self.graph.narrow(name, least, most)
        after = self.graph.bounds.get(name, (0, None))
        promised = self.graph.declared.get(name)
        if promised is not None and after != before:
            allowed = str(Extents(*after))
            raise ShapeMismatchError(
                f"{where} needs {name} = {allowed}; dynamic_shapes promises {name} = {promised}"
            )

    def wanted(self, value: ir.Value) -> bool:
        """Whether anything can read an output."""
        return bool(value.name)

    def where(self, frame: Frame, node: ir.Node) -> str:
        """For messages: file, node, operator, and the subgraph it stands in."""
        label = node.name or next((v.name for v in node.outputs if v.name), "")
        inside = f" in {'/'.join(frame.path)}" if frame.path else ""
        domain = f"{node.domain}." if domain_of(node.domain) else ""
        return f"{self.opened.name}: node {label!r} ({domain}{node.op_type}){inside}"

    def _check_depth(self, frame: Frame, where: str) -> None:
        if len(frame.path) > MAX_DEPTH:
            raise ModelError(f"{where}: functions or subgraphs nested deeper than {MAX_DEPTH}")

    @contextmanager
    def _errors(self, where: str) -> Iterator[None]:
        """What does not fit is an error that names the node; what is Cuvil's own fault says so."""
        try:
            yield
        except Error:
            raise
        except ValueError as error:
            raise ModelError(f"{where}: {error}") from error
        except (LookupError, ArithmeticError, MemoryError, RecursionError) as error:
            reason = f"{type(error).__name__} {error}".strip()
            raise ModelError(f"{where}: inputs or attributes do not fit ({reason})") from error
        except Exception as error:
            raise internal_error(where, error) from error


def _key(domain: str, name: str, overload: str = "") -> tuple[str, str, str]:
    return (domain_of(domain), name, overload)


def _kind(value: Any) -> TensorType | str | None:
    """The type of an input: a word for one that is not a tensor."""
    if value is None or isinstance(value, Value):
        return None if value is None else tensor_type(value)
    return "a sequence"


def _location(frame: Frame, node: ir.Node) -> str:
    label = node.name or next((v.name for v in node.outputs if v.name), node.op_type)
    return "/".join((*frame.path, label or ""))
