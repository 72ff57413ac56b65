"""Comparing the values inside a model: each becomes an output, a few at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from cuvil.cli.compare import Comparison, Tolerance, compare
from cuvil.cli.oracles import Feed, Source, oracle
from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import compile_uncached
from cuvil.errors import Error
from cuvil.frontends.onnx.opener import open_model
from cuvil.options import Options

UNKNOWN_BYTES = 1 << 20
"""What a value is taken to need where its shape is not known before a run."""


@dataclass(frozen=True)
class Value:
    """A value inside the graph: its name, the node that makes it, and about how large it is."""

    name: str
    node: str
    op: str
    bytes: int


@dataclass
class Layers:
    """What came of a comparison, in the order in which the model computes. skipped: see there."""

    compared: list[tuple[Value, Comparison]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def first_drift(self) -> tuple[Value, Comparison] | None:
        """The first value out of bounds."""
        return next(((v, c) for v, c in self.compared if not c.agrees), None)


def inner_values(path: str, sizes: Mapping[str, int]) -> list[Value]:
    """The tensors that nodes of a model's main graph make, in order, without its outputs.

    sizes: extents of symbolic dims, to tell how large values are.
    """
    proto = open_model(path).model
    with suppress(Exception):  # its own classes; sizes are then guesses
        proto = onnx.shape_inference.infer_shapes(proto)
    known = {info.name: _bytes(info, sizes) for info in proto.graph.value_info}
    taken = {info.name for info in proto.graph.output}
    return [
        Value(name, node.name or name, node.op_type, known.get(name, UNKNOWN_BYTES))
        for node in proto.graph.node
        for name in node.output
        if name and name not in taken
    ]


def _bytes(info: onnx.ValueInfoProto, sizes: Mapping[str, int]) -> int:
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return UNKNOWN_BYTES
    dims = [
        d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 0)
        for d in tensor.shape.dim
    ]
    return math.prod(dims) * 8 if all(dims) else UNKNOWN_BYTES


def chunks(values: Sequence[Value], limit: int) -> Iterator[list[Value]]:
    """Consecutive values that together need at most `limit` bytes, but at least one."""
    chunk: list[Value] = []
    total = 0
    for value in values:
        if chunk and total + value.bytes > limit:
            yield chunk
            chunk, total = [], 0
        chunk.append(value)
        total += value.bytes
    if chunk:
        yield chunk


def with_outputs(path: str, names: Sequence[str]) -> bytes:
    """The model with more outputs: serialised messages that stand one behind the other merge."""
    more = onnx.ModelProto()
    more.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return Path(path).read_bytes() + more.SerializeToString()


@dataclass(frozen=True)
class LayerCheck:
    """Compares values of the model at `path`, compiled with `options`, with those of an oracle."""

    path: str
    options: Options
    oracle: str
    tolerance: Tolerance

    def run(
        self,
        values: Sequence[Value],
        feed: Feed,
        limit: int,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> Layers:
        """Compares all values; those of one compile need about `limit` bytes in each engine."""
        layers, done = Layers(), 0
        for chunk in chunks(values, limit):
            progress(f"values {done + 1} to {done + len(chunk)} of {len(values)}")
            self._chunk(chunk, feed, layers)
            done += len(chunk)
        return layers

    def _chunk(self, chunk: Sequence[Value], feed: Feed, layers: Layers) -> None:
        """Compares a chunk; where a value cannot be an output, its halves, down to that value."""
        try:
            got, reference = self._both([v.name for v in chunk], feed)
        except Error as error:
            if len(chunk) == 1:
                layers.skipped[chunk[0].name] = str(error)
                return
            middle = len(chunk) // 2
            self._chunk(chunk[:middle], feed, layers)
            self._chunk(chunk[middle:], feed, layers)
            return
        for value in chunk:
            made = compare(value.name, got[value.name], reference[value.name], self.tolerance)
            layers.compared.append((value, made))

    def _both(self, names: Sequence[str], feed: Feed) -> tuple[Feed, Feed]:
        folder = os.path.dirname(os.path.abspath(self.path))
        source = Source(with_outputs(self.path, names), folder, self.options.dims)
        wanted = Wanted(replace(self.options, name="layers"), folder=folder)
        with compile_uncached(source.model, wanted, None) as engine:
            got = dict(zip(names, engine.run(names, feed), strict=True))
        return got, oracle(self.oracle, source, names)(feed)
