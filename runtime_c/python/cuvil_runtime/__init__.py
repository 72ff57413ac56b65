"""Loads and runs models compiled by Cuvil; needs numpy only."""

from cuvil_runtime.errors import (
    ArtefactError,
    CancelledError,
    CompileError,
    DTypeError,
    Error,
    InputError,
    ModelError,
    OptionError,
    RuntimeFailure,
    ShapeMismatchError,
    TargetError,
    TimeLimitError,
    UnsupportedError,
)
from cuvil_runtime.model import Launch, Model, TensorInfo, default_threads, load, load_object

__version__ = "0.1.0"

__all__ = [
    "ArtefactError",
    "CancelledError",
    "CompileError",
    "DTypeError",
    "Error",
    "InputError",
    "Launch",
    "Model",
    "ModelError",
    "OptionError",
    "RuntimeFailure",
    "ShapeMismatchError",
    "TargetError",
    "TensorInfo",
    "TimeLimitError",
    "UnsupportedError",
    "default_threads",
    "load",
    "load_object",
]
