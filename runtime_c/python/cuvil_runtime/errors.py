"""Every error Cuvil raises on purpose. `cuvil.errors` re-exports them all.

A message names what the user can see (file, node, input), the reason, and the way out.
"""

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
]


class Error(Exception):
    """Base of all of Cuvil's errors: catch this one to catch them all."""


class ModelError(Error):
    """The model file is damaged, inconsistent or not a model; names file, node and reason."""


class SignatureError(ModelError):
    """A custom operator is used, or behaves, otherwise than declared; shows both signatures."""


class CompileError(Error):
    """A sound model could not be compiled."""


class InternalError(CompileError):
    """A fault of Cuvil itself, not of what it was given; `__cause__` is what went wrong."""


class UnsupportedError(CompileError):
    """The model uses an operator, attribute or type that this version does not implement."""


class TargetError(Error, ValueError):
    """An unknown target, cpu or feature, a missing backend, or a cpu that lacks a feature."""


class OptionError(Error, ValueError):
    """An option has an unknown name or a value outside its range."""


class InputError(Error, ValueError):
    """What a call passed does not fit the model: a wrong count, an unknown or missing name."""


class ShapeMismatchError(InputError):
    """A rank or dimension differs from the model's, or two uses of one symbol differ."""


class DTypeError(InputError, TypeError):
    """An input or output array has another element type than the model's."""


class ArtefactError(Error):
    """A library, object or weights file is damaged, or belongs to another build or version."""


class RuntimeFailure(Error, RuntimeError):
    """A run failed: out of memory, an index outside its axis, an internal error."""


class CancelledError(RuntimeFailure):
    """The run was cancelled by another thread."""


class TimeLimitError(RuntimeFailure, TimeoutError):
    """The run took longer than its time limit."""
