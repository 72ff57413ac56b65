"""`cuvil.compile`: a model to an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Unpack

from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import Progress, compile_cached, compile_uncached
from cuvil.engine.keywords import Keywords, options_with
from cuvil.engine.torch_models import is_torch
from cuvil.errors import InputError, UnsupportedError
from cuvil.options import Options

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
