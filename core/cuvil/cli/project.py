"""`cuvil.yaml`: what `cuvil build` makes of which model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuvil.cli.quantize import MODES
from cuvil.errors import ModelError, OptionError
from cuvil.integrations.transformers.tasks import TASKS

try:
    import yaml  # type: ignore[import-untyped]
except ModuleNotFoundError:  # transformers brings it, and nothing else needs it
    yaml = None

__all__ = ["KEYS", "RUNTIMES", "Project", "read_project"]

KEYS: Mapping[str, type] = {
    "model.source": str,
    "model.task": str,
    "model.max_length": int,
    "model.pad_to_multiple_of": int,
    "precision": str,
    "quantization.mode": str,
    "quantization.data": str,
    "opt_level": int,
    "tune": str,
    "target.platform": str,
    "target.cpu": str,
    "target.features": str,
    "target.runtime": str,
    "name": str,
    "output": str,
}


RUNTIMES: Mapping[str, str] = {"shared": "so", "static": "a", "object": "o"}


@dataclass(frozen=True)
class Project:
    """A project file.

    source: `hf://org/name`, or a path of an ONNX file, a file of torch, or a folder of
    `save_pretrained`, seen from the file's folder. task: of transformers, for the first and the
    last of these. mode, data: of `quantize.quantised`; "" for none. runtime: of `RUNTIMES`, how
    programs take the model with its runtime; "" where output says so. The others are options of
    `cuvil compile` by other names; output and data are seen from the file's folder, too.
    """

    file: Path
    source: str
    task: str = ""
    max_length: int | None = None
    pad_to_multiple_of: int = 1
    precision: str = "fp32"
    mode: str = ""
    data: str = ""
    opt_level: int = 2
    tune: str = "0"
    platform: str = "cpu"
    cpu: str = ""
    features: str = ""
    runtime: str = ""
    name: str = ""
    output: str = "build"

    @property
    def of_transformers(self) -> bool:
        """Whether transformers loads the model."""
        return self.source.startswith("hf://") or os.path.isdir(self.source)


def read_project(path: str | os.PathLike[str]) -> Project:
    """Reads a project file, or `cuvil.yaml` in a folder.

    Raises ModelError where there is none or it is no YAML, and OptionError that names the key where
    a key is unknown, missing or of another type.
    """
    file = Path(path)
    file = file / "cuvil.yaml" if file.is_dir() else file
    keys = _flat(_loaded(file), file)
    for key, value in keys.items():
        _check(file, key, value)
    if "model.source" not in keys:
        raise OptionError(f"{file}: model.source is missing: hf://org/name, ./folder or file.onnx")
    fields = {key.rpartition(".")[2]: value for key, value in keys.items()}
    fields["source"] = _place(file, fields["source"])
    if "data" in fields:
        fields["data"] = _place(file, fields["data"])
    fields["output"] = _place(file, fields.get("output", "build"))
    project = Project(file, **fields)
    _check_runtime(project)
    _check_quantization(project)
    _check_source(project)
    return project


def _loaded(file: Path) -> Any:
    if yaml is None:
        raise ModelError(f"{file}: reading YAML needs PyYAML: pip install pyyaml")
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{file}: there is no such file; write one, with model.source") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ModelError(f"{file}: no YAML: {' '.join(str(error).split())}") from error


def _flat(tree: Any, file: Path, prefix: str = "") -> dict[str, Any]:
    """`{"model": {"task": x}}` as `{"model.task": x}`."""
    if not isinstance(tree, Mapping):
        what = prefix.rstrip(".") or "the file"
        raise OptionError(f"{file}: {what} is to hold keys; there are {', '.join(KEYS)}")
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if key == "quantization" and isinstance(value, str):
            value = {"mode": value}
        path = f"{prefix}{key}"
        inside = any(k.startswith(f"{path}.") for k in KEYS)
        found |= _flat(value, file, f"{path}.") if inside else {path: value}
    return found


def _check(file: Path, key: str, value: Any) -> None:
    if key not in KEYS:
        raise OptionError(f"{file}: there is no key {key}; there are {', '.join(KEYS)}")
    if type(value) is not KEYS[key]:
        words = {str: "a text", int: "a whole number"}
        raise OptionError(f"{file}: {key} is {value!r}, not {words[KEYS[key]]}")


def _place(file: Path, word: str) -> str:
    return word if word.startswith("hf://") else os.path.join(file.parent, os.path.expanduser(word))


def _check_runtime(project: Project) -> None:
    file, runtime = project.file, project.runtime
    if runtime and runtime not in RUNTIMES:
        raise OptionError(f"{file}: target.runtime is '{runtime}': one of {', '.join(RUNTIMES)}")
    ending = Path(project.output).suffix.removeprefix(".")
    if runtime and ending in RUNTIMES.values() and ending != RUNTIMES[runtime]:
        raise OptionError(
            f"{file}: target.runtime is '{runtime}', a file .{RUNTIMES[runtime]}, but output is "
            f"{project.output}: name a folder, or leave one of the two out"
        )


def _check_quantization(project: Project) -> None:
    file, mode = project.file, project.mode
    if not mode and not project.data:
        return
    if mode not in MODES:
        raise OptionError(f"{file}: quantization.mode is '{mode}': one of {', '.join(MODES)}")
    if not (project.of_transformers or project.source.endswith(".onnx")):
        raise OptionError(
            f"{file}: quantization is for ONNX files and models of transformers, not "
            f"{project.source}: export the model by torch.onnx.export, or use precision: bf16"
        )
    if (mode == "static") != bool(project.data):
        raise OptionError(
            f"{file}: quantization.data, a file .npz of inputs or a folder of them, "
            + ("is missing" if mode == "static" else "is for static quantization")
        )


def _check_source(project: Project) -> None:
    file, source = project.file, project.source
    if not source.startswith("hf://") and not os.path.exists(source):
        raise ModelError(f"{file}: model.source: {source}: no such file or folder")
    if project.of_transformers and project.task not in TASKS:
        what = f"is '{project.task}'" if project.task else "is missing"
        raise OptionError(f"{file}: model.task {what}: one of {', '.join(TASKS)}")
    if project.of_transformers:
        return
    for key, given in (
        ("task", project.task != ""),
        ("max_length", project.max_length is not None),
        ("pad_to_multiple_of", project.pad_to_multiple_of != 1),
    ):
        if given:
            raise OptionError(f"{file}: model.{key} is for models of transformers, not {source}")
