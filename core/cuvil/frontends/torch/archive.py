"""Files of torch, opened so that nothing in them is run as Python.

TorchScript archives hold code of TorchScript, whose interpreter knows only torch's operators, and
pickles that are read by C++ which makes tensors and plain values only. Archives of torch.export
hold JSON and raw weights; what may be pickled in them is refused here, or read with
weights_only. A pickle of Python objects (torch.save of a module) is refused: unpickling runs
whatever code the file names.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from cuvil.errors import ModelError

__all__ = ["ENDINGS", "load_file"]

ENDINGS = (".pt2", ".pt", ".pth", ".ts", ".jit", ".torchscript")
_OBJECTS = ("custom_obj", "opaque_obj")
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_SYMBOL = re.compile(r"Symbol\('_?[a-z]+\d*'(?:, [a-z]+=True)*\)")
_SIZES = {"Mod", "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv", "Max", "Min", "Integer", "Symbol",
          "ModularIndexing", "PowByNatural", "Eq", "Ne", "Le", "Lt", "Ge", "Gt", "And", "Or", "Not",
          "int_oo", "oo", "True", "False", "Abs", "Pow", "Mul", "Add", "TruncToInt", "FloatTrueDiv",
          "IntTrueDiv", "RoundToInt", "ToFloat", "Where", "positive", "integer"}  # fmt: skip
_TARGETS = ("torch.ops.aten.", "torch.ops.prims.", "torch.ops.higher_order.", "_operator.", "math.",
            "torch.sym_", "torch._sym_", "torch.ops.quantized_decomposed.")  # fmt: skip


def load_file(path: str) -> Any:
    """The ScriptModule or ExportedProgram of a file. ModelError for anything else."""
    try:
        names = _members(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be opened: {error.strerror or error}") from None
    try:
        if names is not None and any("/code/" in n for n in names):
            return torch.jit.load(path, map_location="cpu").eval()  # type: ignore[no-untyped-call]
        if names is not None and any(re.search(r"(^|/)models/.*\.json$", n) for n in names):
            _check_archive(path, names)
            with _weights_only():
                return torch.export.load(path)
    except ModelError:
        raise
    except Exception as error:  # whatever torch meets in a damaged file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{path}: not a sound file of torch: {reason[:300]}") from error
    raise ModelError(f"{path}: {_refusal(names)}")


def _members(path: str) -> list[str] | None:
    """The members of a zip archive; None for another file."""
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            return None
        return zipfile.ZipFile(file).namelist()


def _refusal(names: list[str] | None) -> str:
    way = (
        "save the model with torch.export.save(torch.export.export(model, args), 'model.pt2'), or "
        "name what makes it: package.module:factory"
    )
    if names is None:
        return f"no archive of torch: {way}"
    if any(n.endswith("data.pkl") for n in names):
        return f"a pickle of Python objects, which runs code of the file when it is read: {way}"
    return f"neither TorchScript nor torch.export made this archive: {way}"


@contextmanager
def _weights_only() -> Iterator[None]:
    """torch.load reads tensors only meanwhile, whatever its caller asks for."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _check_archive(path: str, names: list[str]) -> None:
    """ModelError for an archive of torch.export whose reading could run code of its own."""
    for name in names:
        if any(word in name for word in _OBJECTS):
            raise ModelError(f"{path}: it holds Python objects ({name}), which are not read")
    with zipfile.ZipFile(path) as archive:
        for name in names:
            if re.search(r"(^|/)models/.*\.json$", name):
                _check_value(path, json.loads(archive.read(name)))


def _check_value(path: str, value: Any) -> None:
    """Expressions of sizes are evaluated, and targets called, while a program is read."""
    if isinstance(value, list):
        for item in value:
            _check_value(path, item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "expr_str":
                _check_words(path, str(item))
            elif key == "target" and "inputs" in value and not str(item).startswith(_TARGETS):
                raise ModelError(f"{path}: it calls '{item}', which is no operator")
            _check_value(path, item)


def _check_words(path: str, text: str) -> None:
    """Such as `8*Symbol('s77', positive=True, integer=True) + 1`."""
    plain = _SYMBOL.sub("s", text)
    words = [w for w in _WORD.findall(plain) if not re.fullmatch(r"s|[suz]\d+", w)]
    if not set(words) <= _SIZES or re.search(r"[^\w\s+\-*/%(),.<>=&|~]", plain):
        raise ModelError(f"{path}: '{text[:80]}' is no expression of sizes")
