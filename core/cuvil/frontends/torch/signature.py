"""What a caller of a compiled fx module passes and gets: found from the module, without compiling.

Sizes need no input where the shape of a tensor tells them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import TreeSpec, tree_flatten

from cuvil.frontends.torch.dims import expression

__all__ = ["Input", "Output", "Signature", "is_size", "signature_of", "value_of"]


@dataclass(frozen=True)
class Input:
    """An input of the engine: the module's argument number `place`; a size, or a tensor.

    axes: of a tensor that is dense in another order than row-major, its axes from the slowest to
    the fastest; the engine takes it transposed so, which is dense.
    """

    place: int
    name: str
    is_size: bool
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Output:
    """One leaf of what the module returns.

    kind: "tensor" and "size" are the next output of the engine; "number" is `value`, which the
    graph has as it is; "argument" is the module's argument number `value`. axes: of a tensor that
    torch has in another order than row-major, as for `Input`: the engine gives it transposed so.
    """

    kind: str
    name: str = ""
    value: Any = None
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs; spec: how the leaves of the outputs are put together."""

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    spec: TreeSpec


def value_of(node: Node) -> Any:
    """What torch knows of a node's value: a fake tensor, a size, a sequence of these, or None."""
    return node.meta.get("val", node.meta.get("example_value"))


def is_size(value: Any) -> bool:
    """Whether a value is an integer, known or not."""
    return isinstance(value, int | torch.SymInt) and not isinstance(value, bool)


def signature_of(module: GraphModule, constants: Collection[str] = ()) -> Signature:
    """The signature of a module, in which the placeholders called `constants` have a value."""
    holders = module.graph.find_nodes(op="placeholder")
    told = {
        symbol
        for node in holders
        if node.name not in constants and isinstance(value_of(node), torch.Tensor)
        for extent in value_of(node).shape
        for symbol in _plain_symbol(extent)
    }
    inputs = [
        Input(place, node.name, is_size(value_of(node)), _order(value_of(node)))
        for place, node in enumerate(holders)
        if node.name not in constants and _needed(node, told)
    ]
    (last,) = module.graph.find_nodes(op="output")
    leaves, spec = tree_flatten(last.args[0])
    places = {node: place for place, node in enumerate(holders)}
    outputs = [_output(leaf, k, places) for k, leaf in enumerate(leaves)]
    return Signature(tuple(inputs), tuple(outputs), spec)


def _plain_symbol(extent: Any) -> set[Any]:
    found = expression(extent)
    return {found} if found.is_Symbol else set()


def _needed(node: Node, told: set[Any]) -> bool:
    value = value_of(node)
    if isinstance(value, torch.Tensor):
        return True
    if not isinstance(value, torch.SymInt):
        return False
    free = expression(value).free_symbols
    return not free <= told


def _output(leaf: Any, k: int, places: dict[Node, int]) -> Output:
    if not isinstance(leaf, Node):
        return Output("number", value=leaf)
    value = value_of(leaf)
    if leaf in places and not isinstance(value, torch.Tensor):
        return Output("argument", value=places[leaf])
    if value is None:
        return Output("number")
    if isinstance(value, torch.Tensor):
        return Output("tensor", f"output{k}", axes=_order(value))
    return Output("size", f"output{k}")


def _order(value: Any) -> tuple[int, ...]:
    """Axes from slowest to fastest of a dense tensor in another order; () for any other."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return ()
    if value.dim() < 2 or not all(type(d) is int for d in (*value.shape, *value.stride())):
        return _symbolic_order(value)
    strides = tuple(value.stride())
    axes = sorted(range(value.dim()), key=lambda k: (-strides[k], -value.shape[k], k))
    step = 1
    for axis in reversed(axes):
        if value.shape[axis] != 1 and strides[axis] != step:
            return ()
        step *= value.shape[axis]
    plain = [k for k in axes if value.shape[k] != 1]
    return () if plain == sorted(plain) else tuple(axes)


def _symbolic_order(value: torch.Tensor) -> tuple[int, ...]:
    """As `_order`, for symbolic extents: where the strides are known to be products of them."""
    extents, strides = ([expression(d) for d in row] for row in (value.shape, value.stride()))
    rest, found, step = list(range(value.dim())), list[int](), expression(1)
    while rest:
        fits = [k for k in rest if extents[k] == 1] or [k for k in rest if strides[k] == step]
        if not fits:
            return ()
        found.insert(0, fits[-1])
        rest.remove(fits[-1])
        step = step * extents[fits[-1]]
    plain = [k for k in found if extents[k] != 1]
    return () if plain == sorted(plain) else tuple(found)
