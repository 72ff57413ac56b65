"""`check_model`: everything in a model that is not supported, at once, before compiling it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx.functions import has_body
from cuvil.frontends.onnx.importer import Frame, domain_of
from cuvil.frontends.onnx.model import import_opened, read_graph
from cuvil.frontends.onnx.opener import OpenedModel, Source, open_model
from cuvil.ops.custom.registry import find_operator, hint
from cuvil.ops.onnx.registry import find, versions

__all__ = ["Problem", "check_model"]


@dataclass
class Problem:
    """One kind of unsupported node.

    op, domain, opset: the operator as the model uses it ("" for a problem of no node). nodes:
    names of the nodes, `path` the subgraph or function of the first ("" for the graph itself).
    reason says what is not supported, way_out what a user can do about it.
    """

    op: str
    domain: str
    opset: int
    reason: str
    way_out: str
    path: str = ""
    nodes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many nodes have this problem."""
        return len(self.nodes)


def check_model(
    source: Source,
    *,
    folder: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    elements: Mapping[str, int] | None = None,
) -> list[Problem]:
    """What keeps a model from being compiled; an empty list means that it can be imported.

    Arguments as those of `import_model`. ModelError where the file itself is damaged.
    """
    opened = open_model(source, folder=folder)
    found: dict[tuple[str, str, str], Problem] = {}
    seen: set[str] = set()

    def note(frame: Frame, node: ir.Node, error: UnsupportedError) -> None:
        reason = str(error).rpartition(f"({_label(node)})")[2]
        _add(found, seen, frame, node, reason.partition(": ")[2] or str(error))

    model = read_graph(opened)
    for frame, node in _all_nodes(model):
        if not _has_meaning(model, frame, node):
            _add(found, seen, frame, node, "the operator is not supported")
    try:
        import_opened(opened, dims=dims, elements=elements, on_unsupported=note)
    except UnsupportedError as error:
        found[("", "", "")] = Problem("", "", 0, _without_file(opened, error), "change the model")
    except ModelError:
        if not found:
            raise
    return list(found.values())


def _label(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if domain_of(node.domain) else node.op_type


def _without_file(opened: OpenedModel, error: Exception) -> str:
    return str(error).removeprefix(f"{opened.name}: ")


def _add(
    found: dict[tuple[str, str, str], Problem],
    seen: set[str],
    frame: Frame,
    node: ir.Node,
    reason: str,
) -> None:
    name = node.name or next((v.name for v in node.outputs if v.name), "") or "?"
    place = "/".join(frame.path)
    if f"{place}//{name}" in seen:
        return
    seen.add(f"{place}//{name}")
    domain, opset = domain_of(node.domain), frame.opset(node.domain)
    problem = found.setdefault(
        (domain, node.op_type, reason),
        Problem(node.op_type, domain or "ai.onnx", opset, reason, "", place),
    )
    problem.way_out = _way_out(node, opset, reason)
    problem.nodes.append(name)


def _way_out(node: ir.Node, opset: int, reason: str) -> str:
    domain = domain_of(node.domain)
    known = versions(domain, node.op_type)
    if known and max(known) > opset and find(domain, node.op_type, opset) is None:
        return f"convert the model to opset {min(v for v in known if v > opset)} or later"
    if "input data" in reason:
        return "make the value a constant, or compute it from shapes"
    if domain:
        ways = "export with standard ONNX operators, or add a model-local function of this name"
        own = hint(domain, node.op_type)
        return f"{ways}, or {own}" if own else ways
    return "rewrite this part of the model with other ONNX operators"


def _all_nodes(model: ir.Model) -> Iterator[tuple[Frame, ir.Node]]:
    """Every node of the graph and of its functions, with the frame that names its place."""
    top = Frame(opsets=model.graph.opset_imports)
    yield from _walk(top, model.graph)
    for (_, name, _), function in model.functions.items():
        yield from _walk(Frame(opsets=function.opset_imports, path=(name,)), function)


def _walk(frame: Frame, nodes: ir.Graph | ir.Function) -> Iterator[tuple[Frame, ir.Node]]:
    for node in nodes:
        yield frame, node
        for attr in node.attributes.values():
            if attr.type == ir.AttributeType.GRAPH and not attr.is_ref():
                yield from _walk(frame.inside(node.name or node.op_type), attr.as_graph())


def _has_meaning(model: ir.Model, frame: Frame, node: ir.Node) -> bool:
    domain, opset = domain_of(node.domain), frame.opset(node.domain)
    local = {(domain_of(d), n, o) for d, n, o in model.functions}
    if (domain, node.op_type, node.overload) in local or find_operator(domain, node.op_type, opset):
        return True
    return has_body(node.op_type, opset, node.domain)
