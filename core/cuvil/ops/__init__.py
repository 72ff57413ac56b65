"""The closed set of primitives, found by package walk: every module of this folder registers its
own records. `ops.onnx` holds the ONNX operators, which are compositions of these."""

from importlib import import_module
from pkgutil import iter_modules

for _module in sorted(m.name for m in iter_modules(__path__) if not m.ispkg):
    import_module(f"{__name__}.{_module}")
