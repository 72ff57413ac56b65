"""An example of an operator, stamped with the opsets whose version of it must give these numbers.

Expected values are made from the specification's words by numpy, or written down, never by Cuvil.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx_models import i64, model, node_model

__all__ = ["Example", "Examples", "schemas", "versions_in"]

Array = np.ndarray
Schemas = Mapping[tuple[str, str], Sequence[int]]


@dataclass(frozen=True)
class Example:
    """A model of an old opset, its inputs by name, and what it gives.

    fixed: inputs that are known when the model is imported.
    """

    name: str
    opset: int
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    fixed: Mapping[str, Array]
    expected: Sequence[Array]
    rtol: float


@dataclass
class Examples:
    """A list to which a module adds its examples."""

    items: list[Example] = field(default_factory=list)

    def node(
        self,
        op: str,
        opsets: Iterable[int],
        inputs: Sequence[Any],
        *expected: Any,
        fix: Sequence[int] = (),
        rtol: float = 1e-5,
        note: str = "",
        **attrs: Any,
    ) -> None:
        """One node, the same at each of the opsets. fix: inputs that become constants.

        A Python int or list of ints among the inputs is int64.
        """
        arrays = [None if v is None else _array(v) for v in inputs]
        named = {f"x{k}": v for k, v in enumerate(arrays) if v is not None}
        fixed = {f"x{k}": named.pop(f"x{k}") for k in fix}
        for opset in opsets:
            made = node_model(op, arrays, len(expected), opset, **attrs)
            self._add(f"{op}-{opset}{note}", opset, made, named, fixed, expected, rtol)

    def text(
        self,
        name: str,
        opsets: Iterable[int],
        graph: str,
        feeds: Mapping[str, Any],
        *expected: Any,
        rtol: float = 1e-5,
    ) -> None:
        """A graph in ONNX's text form."""
        arrays = {k: _array(v) for k, v in feeds.items()}
        for opset in opsets:
            self._add(f"{name}-{opset}", opset, model(graph, opset), arrays, {}, expected, rtol)

    def _add(
        self,
        name: str,
        opset: int,
        made: onnx.ModelProto,
        feeds: Mapping[str, Array],
        fixed: Mapping[str, Array],
        expected: Sequence[Any],
        rtol: float,
    ) -> None:
        values = [np.asarray(v) for v in expected]
        for output, value in zip(made.graph.output, values, strict=True):
            kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            output.type.CopyFrom(onnx.helper.make_tensor_type_proto(kind, value.shape))
        same = sum(e.name.split("#")[0] == name for e in self.items)
        label = f"{name}#{same + 1}" if same else name
        self.items.append(Example(label, opset, made, feeds, fixed, values, rtol))


def _array(value: Any) -> Array:
    return i64(value) if isinstance(value, int | list) else np.asarray(value)


def schemas() -> Schemas:
    """(domain, operator) -> all versions that ONNX defines, sorted."""
    found: dict[tuple[str, str], set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        found.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    return {key: sorted(versions) for key, versions in found.items()}


def versions_in(made: onnx.ModelProto, known: Schemas) -> Iterator[tuple[str, str, int]]:
    """(domain, operator, version) of every node of a model, in subgraphs and functions too."""
    yield from _versions(made.graph.node, _opsets(made.opset_import), known)
    for function in made.functions:
        yield from _versions(function.node, _opsets(function.opset_import), known)


def _opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}


def _versions(
    nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int], known: Schemas
) -> Iterator[tuple[str, str, int]]:
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        fitting = [v for v in known.get((domain, node.op_type), ()) if v <= opsets.get(domain, 1)]
        if fitting:
            yield domain, node.op_type, fitting[-1]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _versions(attribute.g.node, opsets, known)
