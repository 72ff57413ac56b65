"""Loads and runs models compiled by Cuvil; needs numpy only."""

import os

from cuvil_runtime.errors import (
    ArtefactError,
    CancelledError,
    CompileError,
    DTypeError,
    Error,
    InputError,
    InternalError,
    ModelError,
    OptionError,
    RuntimeFailure,
    ShapeMismatchError,
    SignatureError,
    TargetError,
    TimeLimitError,
    UnsupportedError,
)
from cuvil_runtime.model import Launch, Model, TensorInfo, default_threads, load, load_object

__version__ = "0.1.0"


def include_dir() -> str:
    """The folder of the runtime's C headers, `cuvil/*.h`: in the package, or in a checkout."""
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(package, "include")
    if os.path.isdir(installed):
        return installed
    return os.path.join(os.path.dirname(os.path.dirname(package)), "include")


__all__ = [
    "ArtefactError",
    "CancelledError",
    "CompileError",
    "DTypeError",
    "Error",
    "InputError",
    "InternalError",
    "Launch",
    "Model",
    "ModelError",
    "OptionError",
    "RuntimeFailure",
    "ShapeMismatchError",
    "SignatureError",
    "TargetError",
    "TensorInfo",
    "TimeLimitError",
    "UnsupportedError",
    "default_threads",
    "include_dir",
    "load",
    "load_object",
]
