"""`cuvil.explain`: what is compiled and what is not, by what kind of thing it is asked about."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cuvil_runtime import _runtime


def explain(subject: Any, *args: Any, **kwargs: Any) -> Any:
    """What of a jitted function, or of a torch module or function, is native code; and why not.

    args, kwargs: of the call in question, which is needed for torch. The result has `native`, and
    its text is for people.
    """
    jitted = isinstance(subject, _runtime.NativeFunction)
    home = "cuvil.jit_compiler.api" if jitted else "cuvil.integrations.explain"
    return import_module(home).explain(subject, *args, **kwargs)
