"""Graphs that an earlier process has compiled, found by what dynamo has captured.

A record says what became of a captured graph: the digest of its ATen calls, and which argument is
which input. With the weights that makes the fingerprint under which the compile cache has the
engine, so that AOTAutograd need not take the graph apart once more. Records are kept of graphs
that it hands on as they are, of static sizes and of torch's own operators only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import _get_qualified_name

from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import find_cached, open_store
from cuvil.engine.engine import Engine
from cuvil.engine.graph_source import GraphSource
from cuvil.frontends.torch.signature import value_of
from cuvil.frontends.torch.torch_source import TorchSource, fingerprint_of
from cuvil.integrations.torch_compile.calls import Call, native_call
from cuvil.integrations.torch_compile.constants import Constants
from cuvil.integrations.torch_compile.settings import Settings
from cuvil.ir.graph import Graph

__all__ = ["graph_key", "recall", "remember"]

KIND = "torch_graphs"
FORMAT = 1
Quick = Callable[[Sequence[Any]], Any]
_OWN = ("torch", "_operator", "math")


def graph_key(module: GraphModule, inputs: Sequence[Any], statics: frozenset[int]) -> str | None:
    """A digest of all that the ATen calls of a captured graph depend on: its nodes and their
    values, the arguments, and torch's settings. None where that cannot be told."""
    values = [value_of(node) for node in module.graph.nodes]
    if not all(map(_is_plain, inputs)) or not all(map(_is_static, values)):
        return None
    if not all(map(_is_torchs, module.graph.nodes)) or _is_overridden():
        return None
    lines = [f"{FORMAT} {_state()}"]
    lines += [_argument(x, inputs, statics) for x in inputs]
    for node, value in zip(module.graph.nodes, values, strict=True):
        target = node.target if isinstance(node.target, str) else _get_qualified_name(node.target)
        lines.append(f"{node.op} {node.name} {target} {node.args!r} {node.kwargs!r} {_told(value)}")
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=32).hexdigest()


def _is_plain(x: Any) -> bool:
    return type(x) in (torch.Tensor, torch.nn.Parameter) and x.layout is torch.strided


def _is_static(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return all(type(d) is int for d in (*value.shape, *value.stride()))
    if isinstance(value, list | tuple):
        return all(map(_is_static, value))
    return value is None or isinstance(value, bool | int | float | str | torch.Size)


def _is_torchs(node: Node) -> bool:
    """Whether a node means the same in every process that has this torch."""
    if node.op in ("placeholder", "output", "call_method"):
        return True
    target: Any = node.target
    if node.op != "call_function" or isinstance(target, torch._ops.HigherOrderOperator):
        return False
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return str(target).split(".")[0] in ("aten", "prims")
    if type(target).__name__ == "builtin_function_or_method":
        return True
    return str(getattr(target, "__module__", "")).split(".")[0] in _OWN


def _is_overridden() -> bool:
    """Whether modes of the user's see or change what is traced."""
    return bool(
        torch._C._len_torch_function_stack()
        or torch.utils._python_dispatch._len_torch_dispatch_stack()
    )


def _state() -> str:
    """What of torch's settings may change which operators a graph becomes."""
    return repr((
        torch.__version__, torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"),
        torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_float32_matmul_precision(), torch.backends.mkldnn.enabled,
        torch._C._get_flash_sdp_enabled(), torch._C._get_math_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(), torch._functorch.config.get_hash(),
    ))  # fmt: skip


def _argument(x: torch.Tensor, inputs: Sequence[Any], statics: frozenset[int]) -> str:
    first = next(k for k, other in enumerate(inputs) if other is x)
    facts = (type(x).__name__, x.requires_grad, x.is_neg(), x.is_conj(), id(x) in statics, first)
    return f"{_told(x)} {x.device} {x.storage_offset()} {facts}"


def _told(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(value.shape)}{value.stride()}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_told, value))})"
    return repr(value)


def remember(key: str, module: GraphModule, constants: Constants, call: Call) -> None:
    """Notes what the graph of a key has become: a module of ATen calls, and how it is called."""
    if not call.is_plain or module.graph.find_nodes(op="get_attr"):
        return
    holders = module.graph.find_nodes(op="placeholder")
    record = {
        "nodes": TorchSource(module, {}, "torch_graph").nodes_digest().hex(),
        "constants": [[k, holders[k].name] for k in constants.places],
        "read": [k for k in constants.places if holders[k].users],
        "ports": call.ports,
    }
    store = open_store()
    with suppress(OSError):
        if store is not None:
            store.write_record(KIND, key, record)


def recall(
    key: str, inputs: Sequence[Any], statics: frozenset[int], settings: Settings
) -> Quick | None:
    """A call of the engine that was made of the graph of a key and of these weights; it gives None
    where one of them has changed. None where the cache has no such engine."""
    store = open_store()
    record = None if store is None else store.read_record(KIND, key)
    if record is None:
        return None
    constants = Constants(inputs, statics)
    if [k for k, _ in record["constants"]] != constants.places:
        return None
    named = dict(record["constants"])
    tensors = [(named[k], inputs[k]) for k in record["read"]]
    source = _Known(fingerprint_of(bytes.fromhex(record["nodes"]), tensors))
    engine = find_cached(source, Wanted(settings.compile_options), settings.threads)
    return None if engine is None else _call(engine, record["ports"], constants)


def _call(engine: Engine, ports: Mapping[str, Any], constants: Constants) -> Quick:
    inputs = [(place, size, tuple(axes)) for place, size, axes in ports["inputs"]]
    return native_call(engine, inputs, ports["outputs"], constants.placed())


class _Known(GraphSource):
    """Stands for a graph that is in the cache."""

    def __init__(self, fingerprint: bytes) -> None:
        self._fingerprint = fingerprint

    def fingerprint(self) -> bytes:
        return self._fingerprint

    def graph(self) -> Graph:
        raise NotImplementedError("it is looked up, never compiled")
