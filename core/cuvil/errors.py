"""Cuvil's error hierarchy; it lives in `cuvil_runtime`, which works without the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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

__all__ = [
    "ArtefactError",
    "CancelledError",
    "CompileError",
    "DTypeError",
    "Error",
    "InputError",
    "InternalError",
    "ModelError",
    "OptionError",
    "RuntimeFailure",
    "ShapeMismatchError",
    "SignatureError",
    "TargetError",
    "TimeLimitError",
    "UnsupportedError",
    "internal_error",
    "own_faults",
]


def internal_error(where: str, error: BaseException) -> InternalError:
    """What to raise where Cuvil itself is at fault: one line that asks for a report."""
    said = str(error).partition("\n")[0][:300]
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return InternalError(f"{where}: internal error ({reason}); please report it, with the model")


@contextmanager
def own_faults(where: str) -> Iterator[None]:
    """Within, all but Cuvil's errors, and those of the system, become an InternalError."""
    try:
        yield
    except (Error, OSError, MemoryError):
        raise
    except Exception as error:
        raise internal_error(where, error) from error
