"""`@cuvil.jit`: Python functions to native code, one specialisation per signature of types.

The compiler proper is loaded when a function is first called, not when it is decorated.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "build": "cuvil.jit_compiler.native",
    "host_facts": "cuvil.jit_compiler.native",
    "translate": "cuvil.jit_compiler.translation",
}


def __getattr__(name: str) -> Any:
    """Names of the compiler proper, each from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cuvil.jit_compiler' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
