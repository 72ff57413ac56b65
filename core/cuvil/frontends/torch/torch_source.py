"""fx modules as sources for the engine: by their nodes and the contents of their constants."""

from __future__ import annotations

import hashlib
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.fx import GraphModule, Node

from cuvil.engine.graph_source import GraphSource
from cuvil.frontends.torch.constants import bytes_of
from cuvil.frontends.torch.dims import bounds_of
from cuvil.frontends.torch.importer import import_fx
from cuvil.frontends.torch.signature import value_of
from cuvil.ir.graph import Graph

__all__ = ["TorchSource", "fingerprint_of"]


class TorchSource(GraphSource):
    """A module of ATen calls; constants: placeholder -> the tensor that it stands for."""

    def __init__(
        self,
        module: GraphModule,
        constants: Mapping[str, torch.Tensor] | None = None,
        name: str = "module",
    ) -> None:
        self.module = module
        self.constants = dict(constants or {})
        self.name = name

    def fingerprint(self) -> bytes:
        """A digest of the nodes, of what torch knows of their values, and of the constants."""
        return fingerprint_of(self.nodes_digest(), self.tensors())

    def nodes_digest(self) -> bytes:
        """A digest of the graph without its constants."""
        digest = hashlib.blake2b(digest_size=32, person=b"cuvil.torch")
        digest.update(f"{torch.__version__} {self.name}\n".encode())
        for line in _lines(self.module):
            digest.update(line.encode())
        return digest.digest()

    def tensors(self) -> list[tuple[str, torch.Tensor]]:
        """The constants and the tensors that the module holds: those that are read."""
        holders = self.module.graph.find_nodes(op="placeholder")
        read = {node.name for node in holders if node.users}
        constants = [row for row in self.constants.items() if row[0] in read]
        return [*constants, *_attributes(self.module)]

    def graph(self) -> Graph:
        """The graph of the module."""
        return import_fx(self.module, constants=self.constants, name=self.name)


def fingerprint_of(nodes: bytes, tensors: Sequence[tuple[str, torch.Tensor]]) -> bytes:
    """Of a graph with this digest of its nodes, that reads these tensors."""
    digest = hashlib.blake2b(nodes, digest_size=32, person=b"cuvil.torch")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        hashes = pool.map(_digest_of, [tensor for _, tensor in tensors])
        for (name, tensor), found in zip(tensors, hashes, strict=True):
            digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
            digest.update(found)
    return digest.digest()


def _digest_of(tensor: torch.Tensor) -> bytes:
    return hashlib.blake2b(bytes_of(tensor).data, digest_size=32).digest()


def _lines(module: GraphModule) -> Iterator[str]:
    for node in module.graph.nodes:
        target = node.target if isinstance(node.target, str) else str(node.target)
        yield f"{node.op} {node.name} {target} {node.args!r} {node.kwargs!r} {_told(node)}\n"


def _told(node: Node) -> str:
    """What torch knows of a node's value."""
    value = value_of(node)
    return " ".join(map(_one, value if isinstance(value, list | tuple) else [value]))


def _one(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        extents = [[_one(d) for d in row] for row in (value.shape, value.stride())]
        return f"{value.dtype}{extents}"
    if isinstance(value, torch.SymInt):
        return f"{value.node.expr}{sorted(bounds_of(value).items())}"
    return repr(value)


def _attributes(module: GraphModule) -> Iterator[tuple[str, torch.Tensor]]:
    for node in module.graph.find_nodes(op="get_attr"):
        found = operator.attrgetter(str(node.target))(module)
        if isinstance(found, torch.Tensor):
            yield str(node.target), found
