"""How a call of a module becomes the flat arguments of its graph, and its results what it gives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from cuvil.errors import InputError
from cuvil.frontends.torch.signature import value_of

__all__ = ["CallPlan", "Target", "numbers_of"]

Target = tuple[str, str]


@dataclass(frozen=True)
class CallPlan:
    """inputs: placeholders of the arguments, flattened; "" for one that the graph has no place for.
    inside, outside: the structures of (args, keywords) and of the result. outputs: what becomes of
    each flat output: ("state", placeholder), ("input", placeholder) for an argument that is written
    to, ("result", "") or ("nothing", ""). fixed: place among the inputs -> the number that the
    graph was made for. states: placeholder -> what it is before the first call. signature: of
    the function whose parameters a call may name.
    """

    inputs: Sequence[str]
    inside: TreeSpec
    outside: TreeSpec
    outputs: Sequence[Target]
    fixed: Mapping[int, Any] = field(default_factory=dict)
    states: Mapping[str, torch.Tensor] = field(default_factory=dict)
    signature: inspect.Signature | None = None  # not the function, which holds a module

    def flat(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Any]:
        """The arguments in the order of `inputs`. InputError where they have another structure."""
        leaves, spec = tree_flatten((args, dict(keywords)))
        if spec == self.inside:
            return leaves
        leaves, spec = tree_flatten(self._like_examples(args, keywords))
        if spec != self.inside:
            raise InputError(
                f"the arguments have another structure than the examples: {_words(spec)}, "
                f"compiled for {_words(self.inside)}"
            )
        return leaves

    def _like_examples(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        """The same arguments, by position and by keyword as the examples were."""
        count = self.inside.child(0).num_children
        names = list(self.inside.child(1).context or ())
        if self.signature is None:
            return args, {n: keywords[n] for n in names if n in keywords} | dict(keywords)
        try:
            bound = self.signature.bind(*args, **keywords)
        except TypeError as error:
            raise InputError(str(error)) from None
        given = dict(bound.arguments)
        first = [given.pop(n) for n in list(given)[:count]]
        return tuple(first), {n: given[n] for n in names if n in given} | given

    def result(self, leaves: Sequence[Any]) -> Any:
        """What the module gives, from the flat outputs."""
        found = [v for v, (kind, _) in zip(leaves, self.outputs, strict=True) if kind == "result"]
        return tree_unflatten(found, self.outside)


def numbers_of(module: GraphModule, inputs: Sequence[str]) -> dict[int, Any]:
    """Place among the inputs -> the number or text that a graph was made for."""
    holders = {n.name: value_of(n) for n in module.graph.find_nodes(op="placeholder")}
    plain = (bool, int, float, str, type(None))
    return {k: holders[n] for k, n in enumerate(inputs) if isinstance(holders[n], plain)}


def _words(spec: TreeSpec) -> str:
    args, keywords = spec.child(0), spec.child(1)
    names = ", ".join(map(str, keywords.context or ()))
    return f"{args.num_children} arguments{f' and {names}' if names else ''}"
