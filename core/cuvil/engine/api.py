"""`cuvil.compile` and `cuvil.load`: a model to an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

from cuvil.engine.cache_key import Wanted
from cuvil.engine.cache_store import read_json
from cuvil.engine.cached import Progress, compile_cached, compile_uncached
from cuvil.engine.engine import Engine
from cuvil.engine.keywords import Keywords, options_with
from cuvil.engine.torch_models import is_torch
from cuvil.errors import ArtefactError, InputError, UnsupportedError
from cuvil.options import Options
from cuvil_runtime import load as load_artefact

Spec = Iterable[tuple[Any, ...]]
WeightsReader = Callable[[str, int, int], bytes]


def compile(
    model: Any = None,
    *,
    input_spec: Any = None,
    threads: int | None = None,
    cache: bool = True,
    folder: str | os.PathLike[str] | None = None,
    weights_reader: WeightsReader | None = None,
    progress: Progress = lambda stage: None,
    **options: Unpack[Keywords],
) -> Any:
    """Compiles a model for this machine and loads it; no linker is needed.

    model: the path of an ONNX file, the bytes of one, or a ModelProto gives an `Engine`. A torch
    module, function, exported program, TorchScript, a file of these or `package.module:factory`
    gives a `frontends.torch.CompiledModule`; without input_spec, a module or function is compiled
    when it is called. No model: a decorator. input_spec: rows (name,
    dtype, shape) that fix dims of inputs; a name or None in a shape leaves the dim free; for torch
    also example arguments: a tuple, a dict by name, a tensor. threads:
    at most so many per run; None is CUVIL_NUM_THREADS, else the cpus that
    the process may use. cache: whether an earlier compile of the same may be used, and this one
    kept. folder: where external data lies, by default beside the file; weights_reader(location,
    offset, length) hands it out instead. progress: told each stage as it begins. options: target,
    precision, opt_level, dims, dynamic_shapes, batch and others, see `engine.keywords.Keywords`.

    Raises ModelError, UnsupportedError, TargetError, OptionError and others of cuvil.Error.
    """
    chosen = options_with(Options(), options)
    if model is None:
        return lambda function: compile(
            function, input_spec=input_spec, threads=threads, cache=cache, progress=progress,
            **options,
        )  # fmt: skip
    if is_torch(model):
        return _compile_torch(model, input_spec, Wanted(chosen), threads, cache, progress)
    place = None if folder is None else os.fspath(folder)
    wanted = Wanted(chosen, spec_rows(input_spec or ()), place, weights_reader)
    build = compile_cached if cache and weights_reader is None else compile_uncached
    return build(checked_source(model), wanted, threads, progress)


def _compile_torch(
    model: Any,
    spec: Any,
    wanted: Wanted,
    threads: int | None,
    cache: bool,
    progress: Progress,
) -> Any:
    door = torch_door()
    if spec is None and not isinstance(model, str | os.PathLike) and door.may_wait(model):
        return door.lazily(model, wanted.options, threads, cache)
    return door.compile_torch(model, spec, wanted, threads, cache, progress)


def torch_door() -> Any:
    """The torch front end. UnsupportedError where torch is not installed."""
    try:
        return import_module("cuvil.frontends.torch.door")
    except ModuleNotFoundError as error:
        raise UnsupportedError(f"models of torch need torch: {error}; pip install torch") from error


def checked_source(model: Any) -> Any:
    """The model, when it is of a kind that has a front end. Raises InputError, UnsupportedError."""
    if isinstance(model, str | os.PathLike | bytes | bytearray | memoryview):
        return model
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        return model
    kind = type(model).__name__
    if hasattr(model, "state_dict") or callable(model):
        raise UnsupportedError(
            f"a {kind} cannot be compiled: models are ONNX files, their bytes or ModelProtos, and "
            "modules, functions and files of torch; functions on arrays are for cuvil.jit"
        )
    raise InputError(f"a model is a path, the bytes of an ONNX file or a ModelProto, not a {kind}")


def spec_rows(spec: Spec) -> tuple[tuple[str, str, tuple[int | str | None, ...]], ...]:
    """Rows of an input_spec as plain data; dtypes of numpy and torch by their names."""
    return tuple(_row(row) for row in spec)


def _row(row: Sequence[Any]) -> tuple[str, str, tuple[int | str | None, ...]]:
    try:
        name, dtype, shape = row
        extents = tuple(d if d is None or isinstance(d, str) else int(d) for d in shape)
    except (TypeError, ValueError):
        raise InputError(
            f"input_spec: expected rows (name, dtype, shape), such as ('x', 'float32', (1, 3)), "
            f"not {row!r}"
        ) from None
    text = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    return str(name), text.removeprefix("torch.") if dtype is not None else "", extents


def load(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    variant: str | None = None,
    weights: Any = None,
    weights_reader: Callable[[int, int], Any] | None = None,
    name: str | None = None,
) -> Engine:
    """Loads what `cuvil compile` or `cuvil.Compiler` wrote: a `.so`, a `.o`, or their folder.

    Load only files that you trust: they are code. threads: as for `compile`. variant: overrides
    the choice by cpu. weights: path or buffer of the weights, by default the file beside the
    library; weights_reader(offset, count) hands them out. name: which of several models in a file.

    Raises ArtefactError, TargetError or OptionError.
    """
    chosen = weights if weights_reader is None else weights_reader
    return Engine(
        load_artefact(
            artefact_path(path), weights=chosen, threads=threads, variant=variant, name=name
        )
    )


def artefact_path(path: str | os.PathLike[str]) -> Path:
    """The library or object that a path or a folder stands for. Raises ArtefactError."""
    place = Path(path)
    if not place.is_dir():
        return place
    manifest = read_json(place / "manifest.json") or {}
    others = manifest.get("custom_libraries", ())  # lie beside the model's own
    listed = [
        place / str(f)
        for f in manifest.get("files", ())
        if str(f).endswith((".so", ".o")) and f not in others
    ]
    for pattern in ("*.so", "*.o"):
        found = [p for p in listed if p.match(pattern)] or sorted(place.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(p.name for p in found)
            raise ArtefactError(f"{place} holds several models: {names}; give one's path")
    raise ArtefactError(f"{place}: no .so or .o of a compiled model lies here")
