"""Cuvil's error hierarchy; it lives in `cuvil_runtime`, which works without the compiler."""

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

__all__ = [
    "ArtefactError",
    "CancelledError",
    "CompileError",
    "DTypeError",
    "Error",
    "InputError",
    "ModelError",
    "OptionError",
    "RuntimeFailure",
    "ShapeMismatchError",
    "TargetError",
    "TimeLimitError",
    "UnsupportedError",
]
