"""`package.module:factory`: a model, and examples for it, from the user's own code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import torch

from cuvil.errors import Error, ModelError

__all__ = ["from_factory"]


def from_factory(word: str) -> tuple[Any, Any]:
    """What `module:name` stands for: (model, examples or None).

    The name is a module, or a function without parameters that gives one, or one and a tuple of
    example arguments. The current folder is searched first. Raises ModelError.
    """
    place, _, name = word.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(place)
        for part in name.split("."):
            found = getattr(found, part)
        made = found if isinstance(found, torch.nn.Module) else found()
    except Error:
        raise
    except Exception as error:
        raise ModelError(f"{word}: {type(error).__name__}: {error}") from error
    if isinstance(made, tuple) and len(made) == 2:
        return made[0], made[1]
    return made, None
