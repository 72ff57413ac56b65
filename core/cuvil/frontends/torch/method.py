"""`@cuvil.compile(input_spec=...)` on a method of a module."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from itertools import chain
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

import torch

from cuvil.frontends.torch.compiled import CompiledModule

__all__ = ["CompiledMethod", "is_method"]

State = tuple[tuple[int, int], ...]


def is_method(model: Any) -> bool:
    """Whether a function stands in the body of a class: its first parameter is `self`."""
    return isinstance(model, FunctionType) and next(iter(_parameters(model)), "") == "self"


def _parameters(function: Callable[..., Any]) -> Any:
    return inspect.signature(function).parameters


class CompiledMethod:
    """A method that is compiled for each module by its first call, and anew by the first after the
    module's parameters or buffers have changed.

    compile: makes something to call of a bound method.
    """

    def __init__(
        self, function: FunctionType, compile: Callable[[MethodType], CompiledModule]
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._compile = compile
        self._made: WeakKeyDictionary[torch.nn.Module, tuple[State, CompiledModule]] = (
            WeakKeyDictionary()
        )

    def __get__(self, module: torch.nn.Module | None, owner: type | None = None) -> Any:
        return self if module is None else MethodType(self, module)

    def __call__(self, module: torch.nn.Module, *args: Any, **keywords: Any) -> Any:
        return self.of(module)(*args, **keywords)

    def of(self, module: torch.nn.Module) -> CompiledModule:
        """What runs for a module as it is now. Errors as `cuvil.compile`."""
        state = _state(module)
        known = self._made.get(module)
        if known is None or known[0] != state:
            known = state, self._compile(MethodType(self._function, module))
            self._made[module] = known
        return known[1]


def _state(module: torch.nn.Module) -> State:
    """Where the weights are, and how often they have been written to."""
    tensors = chain(module.parameters(), module.buffers())
    return tuple((0 if x.is_inference() else x._version, x.data_ptr()) for x in tensors)
