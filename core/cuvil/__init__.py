"""Cuvil compiles neural-network inference to native code.

    engine = cuvil.compile("model.onnx")
    y = engine(x)

Names load what they need when they are first used, so `import cuvil` itself costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from time import time_ns

from cuvil.version import VERSION as __version__  # noqa: N811

LOADED_NS = time_ns()
"""When this process began to load the compiler: newer source files are not what runs here."""

TYPE_CHECKING = False  # as typing's, whose import would cost more than all else here
if TYPE_CHECKING:
    from typing import Any

    from cuvil.engine.api import compile
    from cuvil.engine.compiler import Compiler
    from cuvil.engine.engine import Engine
    from cuvil.engine.loading import load
    from cuvil.errors import (
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
    from cuvil.explaining import explain
    from cuvil.jit_compiler.api import jit

__all__ = [
    "ArtefactError",
    "CancelledError",
    "CompileError",
    "Compiler",
    "DTypeError",
    "Engine",
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
    "__version__",
    "compile",
    "custom_op",
    "explain",
    "fusion_pattern",
    "jit",
    "load",
    "op",
    "op_fusion",
]

_HOMES = {
    "compile": "cuvil.engine.api",
    "load": "cuvil.engine.loading",
    "Engine": "cuvil.engine.engine",
    "Compiler": "cuvil.engine.compiler",
    "custom_op": "cuvil.ops.custom",
    "explain": "cuvil.explaining",
    "fusion_pattern": "cuvil.rewrite.user",
    "jit": "cuvil.jit_compiler.api",
    "op_fusion": "cuvil.rewrite.user",
    "op": "cuvil.rewrite.user",
}


def __getattr__(name: str) -> Any:
    """The public names, each from the module that defines it; kept once found."""
    if name not in __all__:
        raise AttributeError(f"module 'cuvil' has no attribute '{name}'")
    value = getattr(import_module(_HOMES.get(name, "cuvil.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
