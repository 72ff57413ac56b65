"""Calls of an engine with torch tensors: views in, views out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule
from torch.utils._pytree import tree_unflatten

from cuvil.engine.engine import Engine
from cuvil.engine.torch_arrays import to_arrays, to_tensors
from cuvil.frontends.torch import signature_of
from cuvil.integrations.torch_compile.views import Views

__all__ = ["Call"]

Take = Callable[[Any], Any]


class Call:
    """An engine called with the arguments of the module that it was made of.

    views: results that torch makes in place of the engine's.
    """

    def __init__(
        self,
        engine: Engine,
        module: GraphModule,
        constants: Collection[str] = (),
        views: Views | None = None,
    ) -> None:
        signature = signature_of(module, constants)
        self.engine = engine
        self._run = engine.model.run
        self._takes = [(i.place, _taker(i.is_size, i.axes)) for i in signature.inputs]
        self._gives = [_giver(o.dtype) for o in engine.model.outputs]
        self._plain = all(o.kind == "tensor" and not o.axes for o in signature.outputs)
        self._outputs = signature.outputs
        self._spec = signature.spec
        self._views = views
        self._as_list = signature.spec.type is list or signature.spec.type is tuple

    def __call__(self, args: Sequence[Any]) -> Any:
        arrays = [take(args[place]) for place, take in self._takes]
        found = [give(a) for give, a in zip(self._gives, self._run(arrays), strict=True)]
        if not self._plain:
            found = self._leaves(found, args)
        if self._views:
            found = self._views.put(found, args)
        return found if self._as_list else tree_unflatten(found, self._spec)

    def _leaves(self, found: list[Any], args: Sequence[Any]) -> list[Any]:
        rest = iter(found)
        leaves = []
        for port in self._outputs:
            if port.kind == "tensor":
                value = next(rest)
                back = [port.axes.index(k) for k in range(len(port.axes))]
                leaves.append(value.permute(back) if back else value)
            elif port.kind == "size":
                leaves.append(int(next(rest)))
            else:
                leaves.append(args[port.value] if port.kind == "argument" else port.value)
        return leaves


def _taker(is_size: bool, axes: Sequence[int]) -> Take:
    """How an argument becomes an array."""
    if is_size:
        return lambda x: np.array(x, np.int64)
    if axes:
        return lambda x: _array(x.permute(axes))
    return _array


def _giver(dtype: str) -> Take:
    """How an array of the engine's becomes a tensor, on the same memory."""
    if dtype == "bfloat16" or dtype.startswith("float8"):
        return lambda a: to_tensors([a])[0]
    return torch.from_numpy


def _array(x: torch.Tensor) -> Any:
    try:
        return x.numpy()
    except (TypeError, RuntimeError):
        return to_arrays([x])[0]
