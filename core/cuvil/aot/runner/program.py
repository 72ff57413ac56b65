"""A compiled folder made into a program that runs it, and what it is asked and answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuvil.aot.check import MANIFEST
from cuvil.aot.runner.machine import Machine, compile_c
from cuvil.aot.runner.values import Value, read_values, write_values
from cuvil.errors import ArtefactError, CompileError, RuntimeFailure, TargetError
from cuvil.ir.dtypes import dtype
from cuvil.ir.groups import NONE, SEQUENCE, TENSOR, Group, with_places
from cuvil_runtime import TensorInfo, include_dir

SOURCE = Path(__file__).with_name("call_model.c")
FLAGS = ("-std=gnu11", "-Wall", "-Wextra")
Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Folder:
    """What a compile left: `manifest` is the data of its manifest.json."""

    path: Path
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """The prefix of its functions."""
        return str(self.manifest["name"])

    @property
    def triple(self) -> str:
        return str(self.manifest["target"]["triple"])

    @property
    def inputs(self) -> list[TensorInfo]:
        """As an engine tells them."""
        return [
            TensorInfo(p["name"], _numpy_name(p["dtype"]), tuple(map(_dim, p["dims"])))
            for p in self.manifest["inputs"]
        ]

    @property
    def symbols(self) -> dict[str, tuple[int, int | None]]:
        """Symbol -> least and greatest value."""
        return {s["name"]: (s["min"], s["max"]) for s in self.manifest["symbols"]}

    @property
    def linkable(self) -> Path | None:
        """The archive or object, where there is one."""
        files = (self.path / f"lib{self.name}.a", self.path / f"{self.name}.o")
        return next((file for file in files if file.exists()), None)

    @property
    def library(self) -> Path | None:
        """The shared library, where there is one."""
        file = self.path / f"lib{self.name}.so"
        return file if file.exists() else None

    @property
    def weights(self) -> Path | None:
        """The file of weights that are not embedded."""
        file = self.manifest.get("weights_file")
        return self.path / str(file) if file else None


@dataclass(frozen=True)
class Figures:
    """What a timed call tells; times of one run in nanoseconds."""

    variant: str
    threads: int = 0
    samples: int = 0
    median_ns: float = 0
    best_ns: float = 0


def open_folder(path: str | Path) -> Folder:
    """Reads a compiled folder, or that of a file in it. Raises ArtefactError."""
    place = Path(path)
    file = (place if place.is_dir() else place.parent) / MANIFEST
    try:
        found = Folder(file.parent, json.loads(file.read_text(encoding="utf-8")))
        _ = found.name, found.triple, found.inputs, found.symbols
    except FileNotFoundError:
        raise ArtefactError(
            f"{place}: no {MANIFEST} lies there, so it cannot be told what it was compiled for"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtefactError(f"{file} is not a manifest: {error}") from error
    return found


def build_program(folder: Folder, machine: Machine, output: Path) -> Path:
    """A program that calls the folder's model: linked with it, needing nothing where it runs, where
    there is an archive or object; else one that loads the shared library, by its full path. Raises
    CompileError."""
    common: list[str | Path] = [*FLAGS, "-I", include_dir()]
    header, linkable = folder.path / f"{folder.name}.h", folder.linkable
    if linkable is None:
        return compile_c(machine, [SOURCE], output, [*common, "-ldl"])
    if folder.manifest.get("custom"):
        raise CompileError(f"{folder.path}: it calls functions of custom operators from outside")
    model = [f"-DCUVIL_MODEL={folder.name}", "-include", str(header), "-static", "-pthread"]
    return compile_c(machine, [SOURCE, linkable], output, [*common, *model])


def run_here(
    folder: Folder,
    machine: Machine,
    inputs: Arrays,
    scratch: Path,
    threads: int | None = None,
    seconds: float = 0,
) -> tuple[dict[str, np.ndarray[Any, Any]], Figures]:
    """Outputs by name of one run on this machine, by an emulator where it is of another kind.

    scratch: a folder for the program and its files. seconds: how long to time runs. Raises
    TargetError with what is missing, CompileError, RuntimeFailure with what the program said.
    """
    if missing := machine.lacking(shared=folder.linkable is None):
        raise TargetError(
            f"{folder.path} cannot be run here: {missing}; an archive needs no library there: "
            "compile with --emit a"
        )
    program = build_program(folder, machine, scratch / "call_model")
    request, response = scratch / "request", scratch / "response"
    write_request(folder, inputs, request)
    command = machine.command(program, *settings(threads, seconds))
    done = subprocess.run(
        command,
        input=line(folder, folder.library, request, response),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    figures = answer(done.stdout, done.returncode, done.stderr)
    return read_response(folder, response), figures


def settings(threads: int | None, seconds: float) -> list[str]:
    """The program's arguments. threads: None is all."""
    return [str(threads or 0), str(seconds)]


def line(folder: Folder, library: Path | None, request: Path | str, response: Path | str) -> str:
    """What the program reads to make one call."""
    place = library.resolve() if library else "-"
    return f"{place} {folder.name} {request} {response}\n"


def answer(said: str, status: int, errors: str) -> Figures:
    """What the program's answer tells. Raises RuntimeFailure with its reason, or how it ended."""
    words = said.split()
    if words[:1] == ["ok"]:
        return Figures(words[1], *map(int, words[2:4]), *map(float, words[4:]))
    end = f"the program ended with {status}: {errors.strip() or 'it said nothing'}"
    raise RuntimeFailure(said.strip().removeprefix("failed: ") or end)


def write_request(folder: Folder, inputs: Arrays, path: Path) -> None:
    """Writes the inputs, tensors by name, as the values that the header has."""
    groups, _ = groups_of(folder.manifest, "inputs")
    write_values(path, [joined(group, [inputs[n] for n in names]) for group, names in groups])


def read_response(folder: Folder, path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of the outputs by name."""
    groups, tensors = groups_of(folder.manifest, "outputs")
    found = zip(groups, read_values(path), strict=True)
    arrays = [array for (group, _), value in found for array in parts(group, value)]
    return dict(zip(tensors, arrays, strict=True))


def groups_of(
    manifest: Mapping[str, Any], side: str
) -> tuple[list[tuple[Group, list[str]]], list[str]]:
    """Inputs or outputs with the names of their tensors, and all those names."""
    names = [port["name"] for port in manifest[side]]
    ports = manifest.get("ports")
    groups = [Group(**port) for port in ports[side]] if ports else list(map(Group, names))
    return [(group, [names[k] for k in places]) for group, places in with_places(groups)], names


def joined(group: Group, arrays: Sequence[np.ndarray[Any, Any]]) -> Value:
    """The tensors of an input as one value."""
    if group.kind == SEQUENCE:
        return list(arrays)
    return arrays[0] if arrays else None


def parts(group: Group, value: Value) -> list[np.ndarray[Any, Any]]:
    """The tensors in the value of an output. Raises RuntimeFailure for one of another kind."""
    if group.kind == SEQUENCE and isinstance(value, list) and len(value) == group.count:
        return value
    if group.kind == TENSOR and isinstance(value, np.ndarray):
        return [value]
    if group.kind == NONE and value is None:
        return []
    raise RuntimeFailure(f"output '{group.name}' of kind {group.kind} came as {type(value)}")


def _numpy_name(name: str) -> str:
    found = dtype(name)
    return "string" if found.is_string else found.numpy.name


def _dim(value: int | str) -> int | str | None:
    return value if isinstance(value, int) or value.isidentifier() else None
