"""Models of transformers as sources of a compile to a library."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cuvil.errors import ModelError, UnsupportedError
from cuvil.extents import Extents, read_dynamic_shapes
from cuvil.frontends.torch.door import open_torch
from cuvil.frontends.torch.export import ExportSource
from cuvil.integrations.transformers.loading import load
from cuvil.integrations.transformers.model import examples_of, fixed_arguments
from cuvil.integrations.transformers.tasks import task_of

__all__ = ["export_onnx", "open_pretrained"]


def open_pretrained(
    task: str, source: str, max_length: int | None = None, multiple: int = 1, name: str = ""
) -> Any:
    """The exported model of a folder of `save_pretrained` or of `hf://org/name`, for any batch and
    length. The arguments are as for `compile_model`. Raises subclasses of cuvil.Error."""
    return _exported(task, source, max_length, multiple, name)[0]


def _exported(
    task: str, source: str, max_length: int | None, multiple: int, name: str
) -> tuple[Any, Mapping[str, Any]]:
    """The exported model, and what varies in its inputs."""
    model, processor = load(task, source)
    examples = examples_of(model, processor, task_of(task)[1].image, max_length, multiple)
    inputs = {**examples.inputs, **fixed_arguments(model)}
    dynamic = read_dynamic_shapes(examples.dynamic_shapes)
    return open_torch(model, inputs, dynamic, name).source, dynamic


def export_onnx(
    task: str, source: str, folder: Path, max_length: int | None = None, multiple: int = 1
) -> tuple[Path, Mapping[str, Extents]]:
    """What `open_pretrained` gives as a file of ONNX in a folder, with its weights, and what the
    model promises of its dims. By torch's exporter: UnsupportedError where onnxscript, which that
    needs, is not installed; ModelError for what it cannot export."""
    made, dynamic = _exported(task, source, max_length, multiple, "model")
    file = folder / "model.onnx"
    try:
        importlib.import_module("onnxscript")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"quantization of {source} needs onnxscript: {error}; pip install onnxscript"
        ) from error
    try:
        _write(made, dynamic, file)
    except Exception as error:  # whatever torch and onnxscript raise of their own
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"{source}: torch.onnx cannot export it: {reason}") from error
    return file, {name: e for name, e in dynamic.items() if isinstance(e, Extents)}


def _write(made: ExportSource, dynamic: Mapping[str, Any], file: Path) -> None:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # of packages that it does without
    program = torch.onnx.export(made.program, dynamo=True, verbose=False)
    assert program is not None
    graph = program.model.graph
    names = {
        str(value.shape[axis]): word
        for value in graph.inputs
        for axis, word in dynamic.get(value.name, {}).items()
    }
    ir = importlib.import_module("onnx_ir")
    for value in [*graph.inputs, *(v for node in graph for v in node.outputs)]:
        if value.shape is not None:
            dims = [d if isinstance(d, int) else names.get(str(d), str(d)) for d in value.shape]
            value.shape = ir.Shape(dims)
    _transpose_weights(graph, ir)
    program.save(file)


def _transpose_weights(graph: Any, ir: Any) -> None:
    """Weights that are transposed in every run are stored transposed: quantisers look for them."""
    for node in list(graph):
        weight = node.inputs[0] if node.op_type == "Transpose" else None
        if weight is None or weight.const_value is None:
            continue
        axes = node.attributes["perm"].as_ints()
        tensor = ir.tensor(weight.const_value.numpy().transpose(axes).copy())
        turned = ir.Value(name=f"{weight.name}.{node.outputs[0].name}", const_value=tensor)
        turned.shape, turned.type = ir.Shape(tensor.shape), ir.TensorType(tensor.dtype)
        graph.register_initializer(turned)
        ir.convenience.replace_all_uses_with(node.outputs[0], turned)
        graph.remove(node, safe=True)
