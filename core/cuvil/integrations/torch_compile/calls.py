"""Calls of an engine with torch tensors: views in, new tensors out."""

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
from cuvil.frontends.torch.signature import Input, Output
from cuvil.integrations.torch_compile.views import Views

__all__ = ["Call", "native_call"]

Take = Callable[[Any], Any]
Quick = Callable[[Sequence[Any]], Any]


class Call:
    """An engine called with the arguments of the module that it was made of.

    quick: the same in one step for plain, dense tensors; None for all others, and where one of the
    tensors `watched`, rows of `Constants.placed`, is another one or was written to.
    views: results that torch makes in place of the engine's. is_plain: the engine's results are the
    call's. ports: where the inputs stand and the axes of the outputs, as plain data.
    """

    def __init__(
        self,
        engine: Engine,
        module: GraphModule,
        constants: Collection[str] = (),
        watched: Sequence[tuple[int, torch.Tensor, bool]] = (),
        views: Views | None = None,
    ) -> None:
        signature = signature_of(module, constants)
        self.engine = engine
        self._run = engine.model.run
        self._takes = [(i.place, _taker(i)) for i in signature.inputs]
        self._outputs = signature.outputs
        tensors = [o for o in signature.outputs if o.kind in ("tensor", "size")]
        infos = engine.model.outputs
        self._gives = [_giver(i.dtype, o.axes) for i, o in zip(infos, tensors, strict=True)]
        self._spec = signature.spec
        self._views = views
        self.is_plain = len(tensors) == len(self._outputs) and signature.spec.type in (list, tuple)
        self.is_plain &= not views and all(o.kind == "tensor" for o in tensors)
        inputs = [(i.place, i.is_size, i.axes) for i in signature.inputs]
        outputs = [o.axes for o in tensors]
        self.ports = {"inputs": inputs, "outputs": outputs}
        self._native = native_call(engine, inputs, outputs, watched)
        self.quick: Quick = self._native if self.is_plain else self._quick

    def __call__(self, args: Sequence[Any]) -> Any:
        found = self.quick(args)
        return self._by_arrays(args) if found is None else found

    def _by_arrays(self, args: Sequence[Any]) -> Any:
        arrays = [take(args[place]) for place, take in self._takes]
        found = [give(a) for give, a in zip(self._gives, self._run(arrays), strict=True)]
        return self._packed(found, args)

    def _quick(self, args: Sequence[Any]) -> Any:
        found = self._native(args)
        return None if found is None else self._packed(found, args)

    def _packed(self, found: list[Any], args: Sequence[Any]) -> Any:
        """In the structure of the module's result."""
        if self.is_plain:
            return found
        rest = iter(found)
        leaves = [_leaf(o, rest, args) for o in self._outputs]
        if self._views:
            leaves = self._views.put(leaves, args)
        return tree_unflatten(leaves, self._spec)


def native_call(
    engine: Engine,
    inputs: Sequence[tuple[int, bool, Sequence[int]]],
    outputs: Sequence[Sequence[int]],
    watched: Sequence[tuple[int, torch.Tensor, bool]],
) -> Quick:
    """Runs an engine with torch's tensors in one step, see `Model.tensor_call`."""
    table = torch.Tensor.__dlpack_c_exchange_api__
    classes = (torch.Tensor, torch.nn.Parameter)
    return engine.model.tensor_call(table, classes, "is_neg", inputs, outputs, watched)


def _leaf(port: Output, rest: Any, args: Sequence[Any]) -> Any:
    if port.kind == "tensor":
        return next(rest)
    if port.kind == "size":
        return int(next(rest))
    return args[port.value] if port.kind == "argument" else port.value


def _taker(port: Input) -> Take:
    """How an argument becomes an array."""
    if port.is_size:
        return lambda x: np.array(x, np.int64)
    if port.axes:
        return lambda x: _array(x.permute(port.axes))
    return _array


def _giver(dtype: str, axes: Sequence[int]) -> Take:
    """How an array of the engine's becomes a tensor, on the same memory."""
    special = dtype == "bfloat16" or dtype.startswith("float8")
    make: Take = (lambda a: to_tensors([a])[0]) if special else torch.from_numpy
    if not axes:
        return make
    back = [axes.index(k) for k in range(len(axes))]
    return lambda a: make(a).permute(back)


def _array(x: torch.Tensor) -> Any:
    try:
        return x.numpy()
    except (TypeError, RuntimeError):
        return to_arrays([x])[0]
