"""Time per kernel of a model, and the arithmetic it does where that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cuvil.cli.inputs import Array
from cuvil.engine.engine import Engine
from cuvil.frontends.onnx import import_model
from cuvil.ir.build import location_name
from cuvil.ir.dims import Dim, evaluate
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.ops import bind, contract
from cuvil.options import Options

HEAVY = ("conv", "contract")
"""Primitives whose arithmetic is counted, at the kernels that are called after them."""


@dataclass(frozen=True)
class KernelTime:
    """One launch of a kernel in the program. seconds: the median; flops: 0 where not known."""

    kernel: str
    nodes: str
    seconds: float
    flops: int = 0

    @property
    def gflops(self) -> float | None:
        """Billions of operations per second, where known."""
        return self.flops / self.seconds / 1e9 if self.flops and self.seconds else None


def kernel_times(
    engine: Engine,
    feed: Mapping[str, Array],
    runs: int = 20,
    flops: Mapping[str, int] | None = None,
) -> list[KernelTime]:
    """The launches of a run in order, each with its median over several runs."""
    engine.profile(feed)
    samples: list[list[float]] = []
    labels: list[tuple[str, str]] = []
    for _ in range(runs):
        launches = engine.profile(feed)[1]
        if len(launches) != len(labels):  # dims found at run time may change what is launched
            labels = [(launch.kernel, launch.nodes) for launch in launches]
            samples = [[] for _ in launches]
        for sample, launch in zip(samples, launches, strict=True):
            sample.append((launch.end_ns - launch.begin_ns) * 1e-9)
    return [
        KernelTime(kernel, nodes, median(sample), _flops_of(kernel, nodes, flops or {}))
        for (kernel, nodes), sample in zip(labels, samples, strict=True)
    ]


def is_heavy(kernel: str) -> bool:
    """Whether a kernel, by its name, is one of `HEAVY`."""
    return any(word in kernel for word in HEAVY)


def _flops_of(kernel: str, nodes: str, known: Mapping[str, int]) -> int:
    return sum(known.get(node, 0) for node in nodes.split(", ")) if is_heavy(kernel) else 0


def node_flops(path: str, options: Options, feed: Mapping[str, Array]) -> dict[str, int]:
    """Multiplications and additions of matrix products and convolutions, by node name.

    Of the model as imported: a kernel that computes the same with fewer looks faster.
    """
    graph = import_model(path, dims=dict(options.dims))
    types = {n: tensor_type(v) for n, v in zip(graph.input_names, graph.inputs, strict=True)}
    env = bind.bind_symbols(types, feed)
    found: dict[str, int] = {}
    for op in graph.block.ops:
        name = op.name.removeprefix("cuvil.")
        if name in HEAVY:
            operands = [tensor_type(v).dims for v in op.operands]
            out = _size(tensor_type(op.results[0]).dims, env)
            inner = _inner(name, operands, attrs_of(op), env)
            node = location_name(op)
            found[node] = found.get(node, 0) + 2 * out * inner
    return found


def _inner(
    name: str, operands: Sequence[Sequence[Dim]], attrs: object, env: Mapping[str, int]
) -> int:
    """Products that are summed for one element of the result."""
    if name == "conv":
        return _size(operands[1][1:], env)
    spec = contract.parse(attrs.spec)  # type: ignore[attr-defined]
    return _size([d for c, d in zip(spec.a, operands[0], strict=True) if c in spec.summed], env)


def _size(dims: Sequence[Dim], env: Mapping[str, int]) -> int:
    try:
        return math.prod(evaluate(d, env) for d in dims)
    except (KeyError, ValueError):
        return 0  # a dim that only a run tells
