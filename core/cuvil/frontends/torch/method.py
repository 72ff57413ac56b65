"""`@cuvil.compile(input_spec=...)` on a method of a module."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

import torch

from cuvil.frontends.torch.compiled import CompiledModule

__all__ = ["CompiledMethod", "is_method"]


def is_method(model: Any) -> bool:
    """Whether a function stands in the body of a class: its first parameter is `self`."""
    return isinstance(model, FunctionType) and next(iter(_parameters(model)), "") == "self"


def _parameters(function: Callable[..., Any]) -> Any:
    return inspect.signature(function).parameters


class CompiledMethod:
    """A method that is compiled for each module by its first call, and anew by the first after the
    module's weights have changed.

    compile: makes something to call of a bound method.
    """

    def __init__(
        self, function: FunctionType, compile: Callable[[MethodType], CompiledModule]
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._compile = compile
        self._made: WeakKeyDictionary[torch.nn.Module, CompiledModule] = WeakKeyDictionary()

    def __get__(self, module: torch.nn.Module | None, owner: type | None = None) -> Any:
        return self if module is None else MethodType(self, module)

    def __call__(self, module: torch.nn.Module, *args: Any, **keywords: Any) -> Any:
        return self.of(module)(*args, **keywords)

    def of(self, module: torch.nn.Module) -> CompiledModule:
        """What runs for a module as it is now. Errors as `cuvil.compile`."""
        known = self._made.get(module)
        if known is None or known.weights.changed() is not None:
            known = self._made[module] = self._compile(MethodType(self._function, module))
        return known
