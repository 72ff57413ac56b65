"""From what a caller has of torch to a source for the compiler, and to something to call."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch._export.converter import TS2EPConverter
from torch.export import ExportedProgram

from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import Progress, compile_cached, compile_uncached
from cuvil.errors import InputError, OptionError
from cuvil.extents import Dynamic, Extents
from cuvil.frontends.torch.archive import load_file
from cuvil.frontends.torch.call_plan import CallPlan
from cuvil.frontends.torch.compiled import CompiledModule
from cuvil.frontends.torch.export import Samples, export_module, source_of
from cuvil.frontends.torch.factory import from_factory
from cuvil.frontends.torch.method import CompiledMethod, is_method
from cuvil.frontends.torch.script import parameter_names, script_source
from cuvil.frontends.torch.torch_source import TorchSource
from cuvil.frontends.torch.types import ELEMENTS
from cuvil.frontends.torch.weights import Weights
from cuvil.integrations.torch_compile import backend
from cuvil.options import Options

__all__ = ["compile_torch", "example", "lazily", "may_wait", "open_torch"]

_DTYPES = {str(d).removeprefix("torch."): d for d in ELEMENTS} | {
    short: d for d, short in ELEMENTS.items()
}
_SCRIPT = (torch.jit.ScriptModule, torch.jit.ScriptFunction)


class Opened(NamedTuple):
    """A model of torch, exported. plan: how a call passes its arguments."""

    source: TorchSource
    plan: CallPlan


def open_torch(model: Any, spec: Any, dynamic: Dynamic, name: str = "") -> Opened:
    """Exports a module, function, program, TorchScript, or what a path or `package.module:factory`
    stands for. spec: examples, or rows (name, dtype, shape). Raises cuvil.Error subclasses."""
    if isinstance(model, str | os.PathLike):
        word = os.fspath(model)
        name = name or _stem(word)
        model, given = (load_file(word), None) if os.path.exists(word) else _made(word)
        spec = given if spec is None else spec
    samples, more = _samples(model, spec)
    dynamic = {**more, **dynamic}
    if isinstance(model, _SCRIPT):
        return _script(model, samples, dynamic, name or "script")
    found = source_of(model, samples, dynamic, name)
    return Opened(found, found.plan)


def _made(word: str) -> tuple[Any, Any]:
    if ":" not in word:
        load_file(word)  # says what is wrong with the path
    return from_factory(word)


def _stem(word: str) -> str:
    made = not os.path.exists(word) and ":" in word
    base = word.rpartition(":")[2] if made else os.path.splitext(os.path.basename(word))[0]
    return re.sub(r"\W+", "_", base) or "module"


def _script(model: Any, samples: Samples | None, dynamic: Dynamic, name: str) -> Opened:
    if samples is None:
        raise InputError(f"{name}: give example inputs, or input_spec=[(name, dtype, shape), ...]")
    if not dynamic:
        made = script_source(model, samples.args, samples.keywords, name)
        return Opened(made, made.plan)
    found = export_module(_as_module(model, samples, name), samples, dynamic, name)
    return Opened(found, found.plan)


def _as_module(model: Any, samples: Samples, name: str) -> torch.nn.Module:
    """TorchScript as a module that torch.export takes, for symbolic extents."""
    try:
        found: torch.nn.Module = TS2EPConverter(model, samples.args).convert().module()
    except Exception as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise OptionError(
            f"{name}: TorchScript with dynamic shapes: {reason}; compile it for fixed shapes"
        ) from error
    return _Named(found, parameter_names(model)[: len(samples.args)])


class _Named(torch.nn.Module):
    """A module whose arguments have names."""

    def __init__(self, inside: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.inside = inside
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self._signature = inspect.Signature([inspect.Parameter(n, kind) for n in names])

        def forward(*args: Any, **keywords: Any) -> Any:
            bound = self._signature.bind(*args, **keywords)
            return self.inside(*bound.args)

        forward.__signature__ = self._signature  # type: ignore[attr-defined]
        self.forward = forward


def _samples(model: Any, spec: Any) -> tuple[Samples | None, dict[str, Any]]:
    """Example arguments, and the axes that rows leave open."""
    if spec is None:
        return None, {}
    if isinstance(spec, torch.Tensor):
        return Samples((spec,)), {}
    if isinstance(spec, Mapping):
        return Samples((), dict(spec)), {}
    items = list(spec)
    if items and all(_is_row(item) for item in items):
        return _from_rows(model, items)
    return Samples(tuple(items)), {}


def _is_row(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) == 3 and isinstance(item[0], str)


def _from_rows(model: Any, rows: Sequence[Any]) -> tuple[Samples, dict[str, Any]]:
    dynamic: dict[str, dict[int, Any]] = {}
    values: dict[str, Any] = {}
    for name, dtype, shape in rows:
        extents = [d if isinstance(d, int) else 2 for d in shape]
        values[name] = example(name, dtype, extents)
        for axis, d in enumerate(shape):
            if not isinstance(d, int):
                dynamic.setdefault(name, {})[axis] = Extents() if d is None else str(d)
    if isinstance(model, _SCRIPT):
        return Samples(tuple(values.values())), dynamic
    return Samples((), values), dynamic


def example(name: str, dtype: Any, extents: Sequence[int]) -> torch.Tensor:
    """Zeros of an element type by torch's or numpy's name, or Cuvil's. InputError for others."""
    text = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    kind = _DTYPES.get(text.removeprefix("torch."))
    if kind is None:
        raise InputError(f"input_spec: '{name}': torch has no element type '{text}'")
    return torch.zeros(list(extents), dtype=kind)


def compile_torch(
    model: Any, spec: Any, wanted: Wanted, threads: int | None, cache: bool, progress: Progress
) -> CompiledModule | CompiledMethod:
    """Compiles what `open_torch` takes for this machine; a method when it is called."""
    if is_method(model):
        return CompiledMethod(
            model, lambda bound: _compiled(bound, spec, wanted, threads, cache, progress)
        )
    return _compiled(model, spec, wanted, threads, cache, progress)


def _compiled(
    model: Any, spec: Any, wanted: Wanted, threads: int | None, cache: bool, progress: Progress
) -> CompiledModule:
    progress("export")
    opened = open_torch(model, spec, wanted.options.dynamic, wanted.options.name)
    weights = Weights(model, [x for _, x in opened.source.tensors()])
    build = compile_cached if cache else compile_uncached
    engine = build(opened.source, wanted, threads, progress)
    return CompiledModule(opened.source, opened.plan, engine, weights)


def lazily(
    function: Callable[..., Any], options: Options, threads: int | None, cache: bool
) -> Callable[..., Any]:
    """A function or module that is compiled when it is called, anew for other kinds of arguments:
    torch.compile, without gradients."""
    if options.dynamic or options.specialize or options.dims or options.bounds:
        raise OptionError("shapes are promised of examples: give input_spec, too")
    chosen = {"base": options, "threads": threads, "cache": cache}
    compiled = torch.compile(function, backend=functools.partial(backend, options=chosen))

    @functools.wraps(function if not isinstance(function, torch.nn.Module) else function.forward)
    def call(*args: Any, **keywords: Any) -> Any:
        with torch.no_grad():
            return compiled(*args, **keywords)

    return call


def may_wait(model: Any) -> bool:
    """Whether a model is compiled when it is called, where there are no examples of a call."""
    return not isinstance(model, (*_SCRIPT, ExportedProgram))
