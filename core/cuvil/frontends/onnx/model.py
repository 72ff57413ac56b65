"""`import_model`: an ONNX model as a graph of the `cuvil` dialect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from cuvil.errors import Error, ModelError, UnsupportedError
from cuvil.extents import Dynamic
from cuvil.frontends.declared import carried, declared_extents
from cuvil.frontends.onnx.equal import Equalities
from cuvil.frontends.onnx.functions import quiet
from cuvil.frontends.onnx.importer import POISON, Frame, Importer, OnUnsupported, domain_of
from cuvil.frontends.onnx.maps import drop_map_types
from cuvil.frontends.onnx.opener import OpenedModel, Source, open_model
from cuvil.frontends.onnx.shapes import MAX_PORT_RANK, input_types
from cuvil.frontends.onnx.structures import (
    Structure,
    counted,
    flattened,
    grouped,
    in_order,
    input_group,
    output_group,
    structured,
)
from cuvil.ir.dead import drop_dead
from cuvil.ir.dims import Dim, substitute
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.groups import Group, Groups
from cuvil.ir.names import Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.options import Options

__all__ = ["Promises", "import_model", "import_opened", "read_graph"]


@dataclass(frozen=True)
class Promises:
    """What a caller knows of symbolic dims: see `options.Options`."""

    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    dynamic: Dynamic = field(default_factory=dict)

    @staticmethod
    def of(options: Options) -> Promises:
        return Promises(options.bounds, options.dynamic)


def import_model(
    source: Source,
    *,
    folder: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
    structures: Mapping[str, Structure] | None = None,
    elements: Mapping[str, int] | None = None,
    promises: Promises | None = None,
    name: str | None = None,
) -> Graph:
    """Imports a `.onnx` file, the bytes of one, or a ModelProto.

    folder: where external data is looked for (by default beside the file). dims: extents for
    symbolic dimensions of the inputs, which become static. values: inputs that become constants
    (a shape or axes that the model takes as an input: see DataDependentError). structures: what
    inputs that are sequences or optionals will be; their tensors are inputs `x[0]`, `x[1]`, ...,
    and those of sequences that the model gives are outputs with such names. elements: the same by
    their number, with the types of the file (`options.Options`). promises: what is known of
    symbols. name: of the graph,
    by default the file's stem or the graph's own name. Weights stay in the mapped file.

    ModelError for a damaged or inconsistent model, UnsupportedError for what is not implemented;
    `check_model` lists all of that at once.
    """
    opened = open_model(source, folder=folder)
    return import_opened(
        opened, dims=dims, values=values, structures=structures, elements=elements, name=name,
        promises=promises,
    )  # fmt: skip


def import_opened(
    opened: OpenedModel,
    *,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
    structures: Mapping[str, Structure] | None = None,
    elements: Mapping[str, int] | None = None,
    promises: Promises | None = None,
    name: str | None = None,
    on_unsupported: OnUnsupported | None = None,
) -> Graph:
    """As `import_model`, for a model that is open; on_unsupported: see `Importer`."""
    model = read_graph(opened)
    _check_opsets(opened, model)
    known = counted(model.graph.inputs, elements or {}, opened.name) | dict(structures or {})
    equal: dict[str, Dim] = {}
    where: dict[str, str] = {}
    while True:
        graph, found = _import_once(
            opened, model, dims or {}, (equal, where), values or {}, known,
            promises or Promises(), name, on_unsupported,
        )  # fmt: skip
        more = found.found
        if not more:
            return graph
        where = found.where | where
        equal = {k: substitute(d, more) for k, d in equal.items()} | more


def _import_once(
    opened: OpenedModel,
    model: ir.Model,
    dims: Mapping[str, int],
    settled: tuple[Mapping[str, Dim], Mapping[str, str]],
    values: Mapping[str, np.ndarray],
    structures: Mapping[str, Structure],
    promises: Promises,
    name: str | None,
    on_unsupported: OnUnsupported | None,
) -> tuple[Graph, Equalities]:
    """The graph, and what is to be put in place of symbols of its inputs before trying again.

    settled: what is put in their place already, and which nodes need it."""
    equal, where = settled
    free = [v for v in model.graph.inputs if v.const_value is None and v.name not in values]
    inputs, parts = structured(free, structures)
    types, symbols = input_types(inputs, dims, opened.name, parts)
    if len(types) != len(inputs) + len(parts):
        raise ModelError(f"{opened.name}: two inputs have one name")
    types = in_order(free, structures, types)
    declared = declared_extents(promises.dynamic, types, opened.name)
    types = {k: t.with_dims(substitute(d, equal) for d in t.dims) for k, t in types.items()}
    graph = new_graph(name or _name(opened, model), types, Pool())
    for symbol_name, (least, most) in promises.bounds.items():
        graph.narrow(symbol_name, least, most)
    graph.declare(carried(declared, equal, where))
    importer = Importer(opened, model, graph, symbols, on_unsupported)
    frame = Frame(opsets=model.graph.opset_imports)
    by_name = dict(zip(types, graph.inputs, strict=True))
    frame.values.update((v, by_name[str(v.name)]) for v in inputs)
    frame.values.update(grouped(free, structures, by_name))
    for value in model.graph.inputs:
        if value.name in values:
            frame.values[value] = importer.b.const(values[value.name])
    try:
        importer.nodes(frame, model.graph)
        outputs, given = _outputs(importer, frame, model.graph)
    except RecursionError as error:
        raise ModelError(f"{opened.name}: nested too deeply") from error
    importer.place_constants()
    finish_graph(graph, outputs)
    groups = Groups(tuple(input_group(v, structures) for v in free), tuple(given))
    graph.groups = None if groups.plain else groups
    drop_dead(graph.block)
    return graph, importer.equalities


def _check_opsets(opened: OpenedModel, model: ir.Model) -> None:
    """An opset that does not exist yet may give operators other meanings."""
    newest = onnx.defs.onnx_opset_version()
    for imports in (
        model.graph.opset_imports,
        *(f.opset_imports for f in model.functions.values()),
    ):
        for domain, version in imports.items():
            if domain_of(domain) == "" and version > newest:
                raise UnsupportedError(
                    f"{opened.name}: opset {version} is newer than {newest}, the newest that is "
                    "known here; export for that one, or install a newer onnx package"
                )


def read_graph(opened: OpenedModel) -> ir.Model:
    """The model's graph by onnx-ir, nodes in an order in which values come before their uses."""
    drop_map_types(opened.model, opened.name)
    try:
        with quiet():
            model = ir.from_proto(opened.model)
        model.graph.sort()
        for function in model.functions.values():
            function.sort()
    except Error:
        raise
    except Exception as error:
        reason = _root(error)
        raise ModelError(f"{opened.name}: not a sound ONNX graph: {reason}") from error
    return model


def _root(error: BaseException) -> str:
    """The first line of the innermost cause: onnx-ir wraps errors in a text of the whole graph."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _outputs(
    importer: Importer, frame: Frame, graph: ir.Graph
) -> tuple[dict[str, Value], list[Group]]:
    """The graph's outputs by name, and as a caller sees them."""
    outputs: dict[str, Value] = {}
    groups: list[Group] = []
    for value in graph.outputs:
        where = f"{importer.opened.name}: output {value.name!r}"
        found: Any = importer.value(frame, value, where)
        tensors = {} if found is POISON else flattened(str(value.name), found, where)
        groups += [] if found is POISON else [output_group(value, found)]
        for name, tensor in tensors.items():
            rank = tensor_type(tensor).rank
            if name in outputs:
                raise ModelError(f"{where} is there twice")
            if rank > MAX_PORT_RANK:
                raise UnsupportedError(f"{where} is of rank {rank}, the limit is {MAX_PORT_RANK}")
            outputs[name] = tensor
    return outputs, groups


def _name(opened: OpenedModel, model: ir.Model) -> str:
    stem = os.path.splitext(os.path.basename(opened.name))[0]
    return (model.graph.name or "model") if opened.name.startswith("<") else stem
