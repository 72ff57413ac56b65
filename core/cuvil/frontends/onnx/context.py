"""What a record sees of the node it imports: the `Cx` of `cuvil.ops.onnx.context`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import onnx_ir as ir

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx.builder import FoldingBuilder
from cuvil.frontends.onnx.fold import is_numeric
from cuvil.frontends.onnx.functions import body_function
from cuvil.ir.dims import Dim, SymDim, known_equal, known_ge, symbol, symbols
from cuvil.ir.dims_upper import upper_bound
from cuvil.ir.dtypes import DTYPES, from_onnx
from cuvil.ir.names import Region, Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType

if TYPE_CHECKING:
    from cuvil.frontends.onnx.importer import Frame, Importer

__all__ = ["NodeCx"]


class NodeCx:
    """One node of one frame; see `cuvil.ops.onnx.context.Cx` for what the methods promise."""

    def __init__(self, importer: Importer, frame: Frame, node: ir.Node, where: str) -> None:
        self.b: FoldingBuilder = importer.b
        self.op = node.op_type
        self.opset = frame.opset(node.domain)
        self.outputs = [importer.wanted(value) for value in node.outputs]
        self.node = node
        self._importer = importer
        self._frame = frame
        self.where = where

    def known(self, value: Value | None) -> np.ndarray | None:
        return None if value is None else self.b.known(value)

    def known_ints(self, value: Value, what: str) -> list[Dim]:
        array = self.b.known(value)
        kind = tensor_type(value)
        if array is None:
            raise self._importer.data_dependent(self.where, what, value)
        if not kind.dtype.is_integer:
            self.bad(f"{what} is {kind.dtype.name}, not an integer tensor")
        return [int(x) for x in array.ravel()] if is_numeric(array) else list(array.ravel())

    def dims(self, value: Value) -> tuple[Dim, ...]:
        return tensor_type(value).dims

    def type(self, value: Value) -> TensorType:
        return tensor_type(value)

    def tensor(self, attribute: Any) -> Value:
        return self._importer.constant(attribute, self.node.name or "")

    def dtype(self, code: int) -> str:
        try:
            return from_onnx(code).name
        except KeyError:
            names = {int(kind): kind.name for kind in ir.DataType}
            if code not in names:
                self.bad(f"unknown data type {code}")
            self.fail(f"element type {names[code]} is not supported")

    def new_symbol(self, hint: str) -> SymDim:
        return self._importer.symbols.fresh(hint)

    def new_bounded(self, hint: str, most: Dim | None) -> SymDim:
        return self._importer.bound(hint, 0, most)

    def upper(self, dim: Dim) -> Dim | None:
        return upper_bound(dim, self._importer.tops, self._importer.graph.bounds)

    def inner(self, dim: Dim) -> bool:
        return not self._importer.closed.isdisjoint(symbols(dim))

    def require(self, a: Dim, b: Dim) -> None:
        if not known_equal(a, b):
            self.b.emit("require", [], left=a, right=b)

    def close(self, symbol: SymDim) -> None:
        self._importer.closed.add(str(symbol))

    def extend(self, region: Region, build: Callable[[], Sequence[Value]]) -> None:
        self._importer.extend(region, build)

    def bind_to(self, value: Value, symbol: SymDim) -> None:
        self._importer.bind(value, symbol)

    def bind(self, value: Value, hint: str, least: int = 0, most: Dim | None = None) -> Dim:
        known = self.b.known(value)
        if known is not None:
            item = known.reshape(()).item()
            return int(item) if is_numeric(known) else item
        scalar = value if tensor_type(value).dtype.name == "i64" else self.b.cast(value, to="i64")
        return self._importer.bind(scalar, self._importer.bound(hint, least, most))

    def assume(self, dim: Dim, least: int, most: int | None) -> None:
        self._importer.assume(dim, least, most, self.where)

    def equal(self, a: Dim, b: Dim) -> None:
        if a != b:
            self.b.equalities.note(a, b, self.where)

    def at_least(self, a: Dim, b: Dim) -> bool:
        return known_ge(a, b, self._importer.graph.bounds)

    def inline(self, graph: Any, *args: Any) -> tuple[Any, ...]:
        return self._importer.inline(self._subframe(), graph, args, self.where)

    def expand(
        self, body: Any, values: Sequence[Value | None], attributes: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        function = body_function(body, self.where)
        attrs = {k: ir.convenience.convert_attribute(k, v) for k, v in attributes.items()}
        return tuple(
            self._importer.function(self._frame, function, self.node, values, attrs, self.where)
        )

    def declared(self, i: int) -> tuple[str | None, tuple[Dim, ...] | None] | None:
        value = self.node.outputs[i] if i < len(self.node.outputs) else None
        if value is None:
            return None
        kind = None if value.dtype is None else value.dtype.value
        known = None if kind is None else next((t.name for t in DTYPES if t.onnx == kind), "?")
        dims = None if value.shape is None else tuple(map(_extent, value.shape))
        return known, dims

    def region(
        self, types: Sequence[TensorType], build: Callable[..., Sequence[Any]]
    ) -> tuple[Region, tuple[TensorType, ...]]:
        return self._importer.region(types, build, self.where)

    def branches(
        self, *builds: Callable[[], Sequence[Any]]
    ) -> list[tuple[Region, tuple[TensorType, ...]]]:
        return self._importer.branches(builds, self.where)

    def discard(self, region: Region) -> None:
        for block in region.blocks:
            for op in reversed(list(block.ops)):
                block.erase_op(op, safe_erase=False)

    def inputs_of(self, value: Value) -> tuple[str, ...]:
        return self._importer.inputs_of(value)

    def needs(self, value: Value, what: str) -> NoReturn:
        raise self._importer.data_dependent(self.where, what, value)

    def fail(self, reason: str) -> NoReturn:
        raise UnsupportedError(f"{self.where}: {reason}")

    def bad(self, reason: str) -> NoReturn:
        raise ModelError(f"{self.where}: {reason}")

    def _subframe(self) -> Frame:
        return self._frame.inside(self.node.name or self.op)


def _extent(dim: Any) -> Dim:
    """An extent as the model has it; a name, or nothing, is a symbol of its own."""
    return dim if isinstance(dim, int) else symbol("_")
