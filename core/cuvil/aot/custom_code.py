"""The C functions of custom operators as files that are loaded, or linked with a model."""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cuvil.codegen.elf import defined_globals
from cuvil.codegen.elf_file import read_object
from cuvil.errors import ArtefactError, CompileError
from cuvil.ops.custom.calls import ExternCall

__all__ = [
    "blamed",
    "by_binary",
    "compiler",
    "lacking",
    "library_of",
    "object_of",
    "shared_of",
    "soname",
]

_DYNAMIC, _SONAME = 6, 14  # SHT_DYNAMIC, DT_SONAME
_LINES_SHOWN = 3


def by_binary(calls: Sequence[ExternCall]) -> list[list[ExternCall]]:
    """Calls of functions that are in one file, together; CompileError for one without a file."""
    groups: dict[object, list[ExternCall]] = {}
    for call in calls:
        if call.binary is None:
            raise CompileError(
                f"{call.operator}: nothing says where function {call.symbol} is: give .native a "
                "library, object or source (as an undefined symbol it can only be left in an "
                "object or archive: --emit o, --emit a)"
            )
        groups.setdefault(call.binary, []).append(call)
    return list(groups.values())


def file_of(call: ExternCall) -> Path:
    """The file that a user gave. CompileError that names it, the function and the operator."""
    assert call.binary is not None
    path = Path(call.binary.path)
    if not path.is_file():
        raise CompileError(
            f"{call.operator}: {call.binary.kind} {path}, which is to hold function "
            f"{call.symbol}, is not there"
        )
    return path


def library_of(calls: Sequence[ExternCall]) -> Path:
    """The shared library with the functions of these calls. CompileError where it lacks one."""
    path = file_of(calls[0])
    try:
        have = set(defined_globals(path.read_bytes(), exported=True))
    except ArtefactError as error:
        raise CompileError(
            f"{calls[0].operator}: {path}, which is to hold function {calls[0].symbol}: {error}"
        ) from error
    for call in calls:
        if call.symbol not in have:
            raise CompileError(lacking(call.operator, call.symbol, str(path), call.prototype))
    return path


def lacking(operator: str, symbol: str, path: str, prototype: str) -> str:
    """What is said of a file without a function that it should have."""
    return f"{operator}: {path} has no function {symbol}; it must export\n  {prototype}"


def blamed(error: CompileError, calls: Sequence[ExternCall]) -> CompileError:
    """What a linker said, with the operator and the file whose function it misses."""
    for call in calls:
        if call.symbol in str(error):
            said = lacking(call.operator, call.symbol, str(call.binary), call.prototype)
            return CompileError(f"{said}\n  ({error})")
    return error


def object_of(call: ExternCall, folder: Path) -> Path:
    """The object or archive with a function; compiled into the folder where it is a source."""
    assert call.binary is not None
    if call.binary.kind == "object":
        return file_of(call)
    source, target = folder / f"{call.symbol}.c", folder / f"{call.symbol}.o"
    if call.binary.text:
        source.write_text(call.binary.text, encoding="utf-8")
    else:
        source = file_of(call)
    _compile(call, ["-O3", "-fPIC", *call.binary.flags, "-c", str(source), "-o", str(target)])
    return target


def shared_of(calls: Sequence[ExternCall], target: Path) -> None:
    """Makes a shared library of the object or source that holds the functions of these calls."""
    first = calls[0]
    assert first.binary is not None
    with tempfile.TemporaryDirectory(prefix="cuvil-custom-") as scratch:
        item = object_of(first, Path(scratch))
        wanted = [f"-Wl,-u,{call.symbol}" for call in calls]
        _compile(first, ["-shared", "-o", str(target), *wanted, str(item), "-lm"])


def soname(path: Path) -> str:
    """What a shared library calls itself, or the name of its file. ArtefactError."""
    source = read_object(path.read_bytes())
    table = source.find(_DYNAMIC)
    if table is not None:
        names = bytes(source.sections[table.link].data())
        for tag, value in struct.iter_unpack("<qQ", bytes(table.data())):
            if tag == _SONAME:
                return names[value : names.index(b"\0", value)].decode()
    return path.name


def compiler() -> list[str]:
    """The words that call the C compiler: CC, else the first that is there. CompileError."""
    given = shlex.split(os.environ.get("CC", ""))
    for word in given[:1] or ("cc", "gcc", "clang"):
        path = shutil.which(word)
        if path:
            return [path, *given[1:]]
    raise CompileError(
        f"no C compiler for a custom operator's code ({given[0] if given else 'cc'} is not there): "
        "install one, set CC, or give .native a shared library"
    )


def _compile(call: ExternCall, words: Sequence[str]) -> None:
    command = compiler()
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise CompileError(
            f"{call.operator}: {command[0]} cannot make {call.symbol} from {call.binary}: "
            + "; ".join(said[:_LINES_SHOWN])
        )
