"""`python -m tools.models.ops_report`: every operator that the zoo's models use.

A table over all built models: domain, operator, opset versions, node counts per model, the
attribute values seen, input dtypes, and which inputs come as constants.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from tools.models import zoo
from tools.models.case import ZooError

FEW = 12
"""How many distinct values of one attribute are printed."""


@dataclass
class Usage:
    """What the models ask of one operator."""

    models: Counter[str] = field(default_factory=Counter)
    opsets: set[int] = field(default_factory=set)
    attributes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    dtypes: Counter[str] = field(default_factory=Counter)
    operands: Counter[str] = field(default_factory=Counter)


Report = dict[tuple[str, str], Usage]


def survey(paths: dict[str, Path]) -> Report:
    """Usage by (domain, operator) over model files by name, nested graphs included."""
    report: Report = defaultdict(Usage)
    for name, path in paths.items():
        _add_model(report, name, onnx.load(path))
    return report


def _add_model(report: Report, name: str, model: ModelProto) -> None:
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    dtypes = _dtypes(model)
    for node, constants in _nodes(model):
        usage = report[node.domain, node.op_type]
        usage.models[name] += 1
        usage.opsets.add(opsets.get(node.domain, 0))
        for attribute in node.attribute:
            usage.attributes[attribute.name][_value(attribute)] += 1
        usage.operands[",".join(_operand(value, constants) for value in node.input)] += 1
        seen = [dtypes[value] for value in node.input if value in dtypes]
        usage.dtypes[seen[0] if seen else "?"] += 1


def _nodes(model: ModelProto) -> Iterator[tuple[NodeProto, frozenset[str]]]:
    """All nodes with the names that are constant where they stand."""
    yield from _graph_nodes(model.graph, frozenset())
    for function in model.functions:
        for node in function.node:
            yield node, frozenset()


def _graph_nodes(
    graph: GraphProto, outer: frozenset[str]
) -> Iterator[tuple[NodeProto, frozenset[str]]]:
    constants = outer | {value.name for value in graph.initializer}
    constants |= {node.output[0] for node in graph.node if node.op_type == "Constant"}
    for node in graph.node:
        yield node, constants
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graph_nodes(attribute.g, constants)


def _dtypes(model: ModelProto) -> dict[str, str]:
    """Element types by value name, as far as shape inference tells; weights are not needed."""
    inferred = onnx.shape_inference.infer_shapes(model) if model.ByteSize() < 2**31 else model
    return dict(_graph_dtypes(inferred.graph))


def _graph_dtypes(graph: GraphProto) -> Iterator[tuple[str, str]]:
    for value in (*graph.input, *graph.value_info, *graph.output):
        yield value.name, TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
    for weight in graph.initializer:
        yield weight.name, TensorProto.DataType.Name(weight.data_type).lower()
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graph_dtypes(attribute.g)


def _operand(value: str, constants: frozenset[str]) -> str:
    return "-" if not value else "const" if value in constants else "value"


def _value(attribute: AttributeProto) -> str:
    """A short text of the attribute's value; tensors and graphs by type and shape only."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, TensorProto):
        dtype = helper.tensor_dtype_to_np_dtype(value.data_type)
        return f"tensor<{np.dtype(dtype)}{list(value.dims)}>"
    if isinstance(value, GraphProto):
        return f"graph({len(value.node)} nodes)"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    text = str(list(value)) if isinstance(value, list) or hasattr(value, "append") else f"{value}"
    return text if len(text) <= 60 else text[:57] + "..."


def lines(report: Report) -> Iterator[str]:
    """The report as text, most used operator first."""
    for (domain, name), usage in sorted(report.items(), key=lambda entry: -len(entry[1].models)):
        versions = ",".join(str(version) for version in sorted(usage.opsets))
        yield f"{domain or 'ai.onnx'}.{name}  opset {versions}  {usage.models.total()} nodes"
        yield "  models     " + _counts(usage.models, len(usage.models))
        yield "  dtypes     " + _counts(usage.dtypes, FEW)
        yield "  operands   " + _counts(usage.operands, FEW)
        for attribute, values in sorted(usage.attributes.items()):
            yield f"  {attribute:10} " + _counts(values, FEW)


def _counts(counter: Counter[str], most: int) -> str:
    shown = [f"{text or '(none)'} x{count}" for text, count in counter.most_common(most)]
    return "  ".join(shown) + ("  ..." if len(counter) > most else "")


def main(argv: list[str] | None = None) -> int:
    """Print the report over the models named, or over all that are there without building."""
    parser = argparse.ArgumentParser(prog="python -m tools.models.ops_report", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model; all present without one")
    options = parser.parse_args(argv)
    try:
        paths = _named(options.names) if options.names else _present()
    except ZooError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines(survey(paths))))
    return 0


def _named(names: list[str]) -> dict[str, Path]:
    return {name: zoo.get(name).path for name in names}


def _present() -> dict[str, Path]:
    """Each file once, under the name of the first row that uses it."""
    found: dict[Path, str] = {}
    for name in zoo.names():
        try:
            path = zoo.row(name).source.location()
        except ZooError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if path.exists():
            found.setdefault(path, name)
    return {name: path for path, name in found.items()}


if __name__ == "__main__":
    sys.exit(main())
