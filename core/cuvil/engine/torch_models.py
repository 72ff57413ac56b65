"""Whether a model is torch's, told without importing torch."""

from __future__ import annotations

import os
import re
from sys import modules
from types import FunctionType, MethodType
from typing import Any

__all__ = ["is_torch"]

_ENDINGS = (".pt2", ".pt", ".pth", ".ts", ".jit", ".torchscript")
_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_torch(model: Any) -> bool:
    """Whether the torch front end takes it: a module, an exported program, TorchScript, a function,
    a file of these, or `package.module:factory`."""
    if isinstance(model, str | os.PathLike):
        word = os.fspath(model)
        made = _FACTORY.fullmatch(word) is not None and not os.path.exists(word)
        return word.endswith(_ENDINGS) or made
    torch = modules.get("torch")
    if torch is None:
        return False
    kinds = [torch.nn.Module, torch.jit.ScriptFunction]
    if "torch.export" in modules:
        kinds.append(torch.export.ExportedProgram)
    return isinstance(model, (*kinds, FunctionType, MethodType))
