"""How much arithmetic a model asks for: multiplications and additions of its heavy primitives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cuvil.frontends.onnx import import_model
from cuvil.ir.dims import Dim, evaluate
from cuvil.ir.names import Block, Operation
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.ops import bind, contract


def model_flops(path: Path | str, inputs: Mapping[str, np.ndarray]) -> int:
    """Operations of the matrix products and convolutions in one run on such inputs.

    A multiplication with an addition counts as two. The model is counted as its file says it, so
    an engine that finds a cheaper way only looks faster. Of branches the dearest counts, of a loop
    one turn. Raises cuvil.ModelError or UnsupportedError for a model that cannot be read.
    """
    graph = import_model(path)
    types = {n: tensor_type(v) for n, v in zip(graph.input_names, graph.inputs, strict=True)}
    return _block_flops(graph.block, bind.bind_symbols(types, inputs))


def _block_flops(block: Block, env: Mapping[str, int]) -> int:
    return sum(_op_flops(op, env) for op in block.ops)


def _op_flops(op: Operation, env: Mapping[str, int]) -> int:
    inside = [_block_flops(block, env) for region in op.regions for block in region.blocks]
    if inside:
        return max(inside)
    name = op.name.removeprefix("cuvil.")
    if name not in ("conv", "contract"):
        return 0
    operands = [tensor_type(value).dims for value in op.operands]
    return 2 * _size(tensor_type(op.results[0]).dims, env) * _summed(name, operands, op, env)


def _summed(
    name: str, operands: Sequence[Sequence[Dim]], op: Operation, env: Mapping[str, int]
) -> int:
    """Products that are added up for one element of the result."""
    if name == "conv":
        return _size(operands[1][1:], env)
    spec = contract.parse(attrs_of(op).spec)
    axes = zip(spec.a, operands[0], strict=True)
    return _size([dim for letter, dim in axes if letter in spec.summed], env)


def _size(dims: Sequence[Dim], env: Mapping[str, int]) -> int:
    return math.prod(evaluate(dim, env) for dim in dims)
