"""Results that share memory with arguments or with other results, where sizes are symbolic.

AOTAutograd makes such a result anew on the memory that it is a view of. With symbolic sizes it does
so by the size, strides and offset of what the graph has given, so these must be eager's.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from cuvil.frontends.torch.signature import value_of

__all__ = ["Views", "is_view"]

_SIZES = {torch.ops.aten.sym_size.int, torch.ops.aten.sym_stride.int,
          torch.ops.aten.sym_numel.default, torch.ops.aten.sym_storage_offset.default}  # fmt: skip


class Views:
    """The results of a module that are views, found by running what makes views in torch.

    False where there are none, or where no size is symbolic. first: results before it are copied
    into arguments, and so may share no memory with them.
    """

    def __init__(self, module: GraphModule, first: int = 0) -> None:
        self._holders = module.graph.find_nodes(op="placeholder")
        (last,) = module.graph.find_nodes(op="output")
        self._leaves = tree_leaves(last.args[0])
        self._steps: list[Node] = []
        self._places: list[int] = []
        if any(map(_is_symbolic, self._holders)):
            self._find(first)

    def __bool__(self) -> bool:
        return bool(self._places)

    def _find(self, first: int) -> None:
        known: dict[Node, bool] = dict.fromkeys(self._holders, True)
        nodes = [leaf for leaf in self._leaves if isinstance(leaf, Node)]
        fresh = {n for n in nodes if not is_view(n)} - known.keys()
        for place, leaf in list(enumerate(self._leaves))[first:]:
            if isinstance(leaf, Node) and leaf not in fresh and self._reached(leaf, fresh, known):
                self._places.append(place)

    def _reached(self, node: Node, fresh: Collection[Node], known: dict[Node, bool]) -> bool:
        """Whether a node is made of arguments and fresh results by views and arithmetic of sizes;
        notes the steps to it."""
        if node in fresh:
            return True
        if node not in known:
            good = is_view(node) or _is_size(node)
            known[node] = good and all(self._reached(n, fresh, known) for n in node.all_input_nodes)
            if known[node]:
                self._steps.append(node)
        return known[node]

    def put(self, found: list[Any], args: Sequence[Any]) -> list[Any]:
        """The results, with eager's own in the place of those that are views."""
        env: dict[Node, Any] = dict(zip(self._holders, args, strict=True))
        for leaf, value in zip(self._leaves, found, strict=True):
            if isinstance(leaf, Node):
                env.setdefault(leaf, value)
        for node in self._steps:
            given = map_arg((node.args, node.kwargs), env.__getitem__)
            env[node] = node.target(*given[0], **given[1])  # type: ignore[operator]
        for place in self._places:
            found[place] = env[self._leaves[place]]
        return found


def _is_symbolic(node: Node) -> bool:
    value = value_of(node)
    shape = value.shape if isinstance(value, torch.Tensor) else [value]
    return any(isinstance(d, torch.SymInt) for d in shape)


def is_view(node: Node) -> bool:
    """Whether a node gives memory that others have."""
    if node.op == "placeholder":
        return isinstance(value_of(node), torch.Tensor)
    if node.target is operator.getitem:
        return is_view(node.all_input_nodes[0])
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view


def _is_size(node: Node) -> bool:
    number = isinstance(value_of(node), int | float | torch.SymInt | torch.SymFloat)
    return number and (not isinstance(node.target, torch._ops.OpOverload) or node.target in _SIZES)
