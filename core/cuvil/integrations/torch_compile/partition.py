"""A graph of which some nodes cannot be compiled, in parts that can be and the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from cuvil.integrations.torch_compile.views import is_view

__all__ = ["partitioned"]

_FREE = (  # views and the like: not worth an engine of their own
    "aten.view.default", "aten.permute.default", "aten.expand.default", "aten.unsqueeze.default",
    "aten.squeeze.dim", "aten.clone.default", "aten.slice.Tensor", "aten.alias.default",
    "<built-in function getitem>",
)  # fmt: skip


class _Support(OperatorSupportBase):
    def __init__(self, bad: Collection[str]) -> None:
        self.bad = bad

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        return node.op == "call_function" and node.name not in self.bad


def partitioned(module: GraphModule, bad: Collection[str]) -> tuple[GraphModule, list[str]]:
    """A module that calls submodules for all nodes but those called `bad`, and their names."""
    copy = GraphModule(module, _copied(module))
    chooser = CapabilityBasedPartitioner(
        copy,
        _Support(_with_views(module, bad)),
        allows_single_node_partition=True,
        non_compute_ops=_FREE,
    )
    parts = [
        p for p in chooser.propose_partitions() if any(str(n.target) not in _FREE for n in p.nodes)
    ]
    whole = chooser.fuse_partitions(parts, prefix="compiled_")
    return whole, [str(n.target) for n in whole.graph.find_nodes(op="call_module")]


def _with_views(module: GraphModule, bad: Collection[str]) -> set[str]:
    """With the views that lead to a node which goes by places in memory: in eager they share it,
    while an engine gives them memory of their own."""
    found = set(bad)
    for node in module.graph.nodes:
        if node.name in bad and "as_strided" in str(node.target):
            first = node.args[0]
            while first.op != "placeholder" and is_view(first):
                found.add(first.name)
                first = first.args[0]
    return found


def _copied(module: GraphModule) -> Any:
    """The graph once more: fusing changes it in place."""
    graph = type(module.graph)()
    graph.output(graph.graph_copy(module.graph, {}))
    for old, new in zip(module.graph.nodes, graph.nodes, strict=True):
        new.name = old.name
    return graph
