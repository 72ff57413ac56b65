"""What a compile with custom operators depends on, as plain data for the key of the compile cache.

A function is known by its bytecode, its defaults, what it closes over, and the files of the package
that it comes from. A declaration whose functions cannot be known so is not cached.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from cuvil.ops.custom.operator import CustomOp
from cuvil.ops.custom.registry import OPERATORS

__all__ = ["UnknownError", "files_of", "identities", "identity"]

_PLAIN = (int, float, bool, str, bytes, type(None))


class UnknownError(Exception):
    """A function that may be another one tomorrow: made by exec, or closing over an object."""


def identities() -> list[str] | None:
    """Of all operators that this process itself declares, in order; None where one is unknown."""
    own = [operator for _, operator in sorted(OPERATORS.items()) if not operator.package]
    try:
        return [identity(operator) for operator in own]
    except UnknownError:
        return None


def identity(operator: CustomOp) -> str:
    """A digest of all that a compile takes from a declaration. UnknownError."""
    record, code = operator.record, operator.meaning.code
    rows = [(row.symbol, row.kind, row.binary and row.binary.digest) for row in code.rows]
    words: list[object] = [
        str(operator.signature),
        record.name,
        record.pure,
        record.tolerance,
        rows,
    ]
    for name, function in sorted(operator.meaning.functions.items()):
        words += [name, *_function(function)]
    words += [_digest(path, operator.declared_ns) for path in _python_files(operator)]
    return hashlib.blake2b(repr(words).encode(), digest_size=32).hexdigest()


def files_of(operator: CustomOp) -> list[str]:
    """The files that decide what an operator is: Python sources, and those of its C functions."""
    binaries = [
        row.binary.path for row in operator.meaning.code.rows if row.binary and row.binary.path
    ]
    return sorted({*binaries, *_python_files(operator)})


def _python_files(operator: CustomOp) -> list[str]:
    """Those of the packages that its functions are in, or their own files. UnknownError."""
    functions = [f for f in operator.meaning.functions.values() if isinstance(f, FunctionType)]
    return sorted({path for f in functions for path in _sources(f)})


def _sources(function: FunctionType) -> tuple[str, ...]:
    file = Path(function.__code__.co_filename)
    if not file.is_file():
        raise UnknownError(str(file))
    top = sys.modules.get(function.__module__.partition(".")[0])
    folders = [Path(p) for p in getattr(top, "__path__", ())]
    inside = next((f for f in folders if file.is_relative_to(f)), None)
    return (str(file),) if inside is None else _package_files(inside)


@lru_cache(maxsize=64)
def _package_files(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(map(str, folder.rglob("*.py"))))


def _digest(path: str, declared_ns: int) -> str:
    """Of a source file; UnknownError where it has changed since what runs here was loaded."""
    changed = os.stat(path).st_mtime_ns
    if changed > declared_ns:
        raise UnknownError(path)
    return _content(path, changed)


@lru_cache(maxsize=4096)
def _content(path: str, changed: int) -> str:
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=32).hexdigest()


def _function(function: Any) -> Iterator[object]:
    if isinstance(function, str):
        yield function
    elif hasattr(function, "SerializeToString"):
        yield function.SerializeToString(deterministic=True)
    elif isinstance(function, FunctionType):
        yield from _code(function.__code__)
        yield _value(function.__defaults__ or ())
        yield _value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        yield _value(tuple(cell.cell_contents for cell in function.__closure__ or ()))
    else:
        yield _named(function)


def _code(code: CodeType) -> Iterator[object]:
    yield code.co_code
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)


def _value(value: Any) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple | list):
        return [_value(x) for x in value]
    if isinstance(value, FunctionType):
        return list(_function(value))
    return _named(value)


def _named(value: Any) -> object:
    """Something that a module offers under its name, such as a function of numpy."""
    name = getattr(value, "__name__", "")
    home = str(getattr(value, "__module__", None) or type(value).__module__)
    package = sys.modules.get(home.partition(".")[0])
    if not name or getattr(package, name, None) is not value:
        raise UnknownError(repr(value))
    return [home, name, getattr(package, "__version__", "")]
