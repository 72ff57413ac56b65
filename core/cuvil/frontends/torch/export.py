"""Modules, functions and exported programs as sources for the compiler, by way of torch.export."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from cuvil.errors import Error, InputError, UnsupportedError
from cuvil.extents import Dynamic, Extents
from cuvil.frontends.torch.call_plan import CallPlan, Target, numbers_of
from cuvil.frontends.torch.decompose import decompositions
from cuvil.frontends.torch.dims import range_of
from cuvil.frontends.torch.dynamic import (
    Axes,
    axes_of,
    export_dims,
    fitting,
    names_of_rest,
    symbol_names,
)
from cuvil.frontends.torch.ports import with_plain_inputs
from cuvil.frontends.torch.signature import value_of
from cuvil.frontends.torch.torch_source import TorchSource
from cuvil.frontends.torch.violations import recorded_guards, violation
from cuvil.ir.graph import Graph

__all__ = ["ExportSource", "Samples", "export_module", "source_of"]


@dataclass(frozen=True)
class Samples:
    """Example arguments of a call: names of the positional ones where they are known, and all by
    keyword."""

    args: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def named(self, function: Callable[..., Any]) -> dict[str, Any]:
        """The arguments by the names of the function's parameters. InputError where they do not
        fit it."""
        try:
            bound = inspect.signature(function).bind(*self.args, **self.keywords)
        except TypeError as error:
            raise InputError(f"the examples do not fit {_name_of(function)}: {error}") from None
        return dict(bound.arguments)


class ExportSource(TorchSource):
    """An exported program, with the names of its symbols.

    program: decomposed. states: placeholder of a buffer that the program changes -> its output;
    the caller passes and gets those beside the arguments.
    """

    def __init__(
        self,
        program: ExportedProgram,
        name: str,
        axes: Axes | None = None,
        promised: Mapping[str, Extents] | None = None,
        signature: inspect.Signature | None = None,
    ) -> None:
        self.signature = signature
        self.program = program.run_decompositions(decompositions())
        specs = self.program.graph_signature.input_specs
        self.states = _states(self.program)
        constants = {
            s.arg.name: _tensor_of(self.program, str(s.target))
            for s in specs
            if s.kind is not InputKind.USER_INPUT and s.arg.name not in self.states
        }
        super().__init__(self.program.graph_module, constants, name)
        holders = self.module.graph.find_nodes(op="placeholder")
        shapes = {n.name: value_of(n).shape for n in holders
                  if isinstance(value_of(n), torch.Tensor)}  # fmt: skip
        axes = {k: row for k, row in (axes or {}).items() if k in shapes}
        self.env, self.promised = symbol_names(axes, promised or {}, shapes)
        self.env = {**names_of_rest(shapes, self.env), **self.env}

    def fingerprint(self) -> bytes:
        """As of `TorchSource`, with the names of symbols and the promises."""
        names = sorted((name, str(dim)) for name, dim in self.env.items())
        return super().fingerprint() + repr((names, sorted(self.promised.items()))).encode()

    def graph(self) -> Graph:
        """The graph, its symbols called as the caller calls them."""
        graph = super().graph()
        for one, interval in self.program.range_constraints.items():
            if getattr(one, "is_Symbol", False):
                graph.bounds[one.name] = range_of(interval)
        return with_plain_inputs(graph, self.env, self.promised)

    @property
    def plan(self) -> CallPlan:
        """How it is called."""
        program, specs = self.program, self.program.graph_signature.input_specs
        inputs = [str(s.arg.name) for s in specs if s.kind is InputKind.USER_INPUT]
        places = {target: holder for holder, target in self.states.items()}
        outputs = [_target(s, places, self.name) for s in program.graph_signature.output_specs]
        states = {p: _tensor_of(program, t).clone() for p, t in self.states.items()}
        inside, outside = program.call_spec.in_spec, program.call_spec.out_spec
        fixed = numbers_of(self.module, inputs)
        return CallPlan(inputs, inside, outside, outputs, fixed, states, self.signature)


def _states(program: ExportedProgram) -> dict[str, str]:
    """Placeholder -> the buffer, for those that the program changes."""
    changed = set(program.graph_signature.buffers_to_mutate.values())
    specs = program.graph_signature.input_specs
    return {str(s.arg.name): str(s.target) for s in specs
            if s.kind is InputKind.BUFFER and s.target in changed}  # fmt: skip


def _target(spec: Any, places: Mapping[str, str], name: str) -> Target:
    """What becomes of an output of the program."""
    if spec.kind is OutputKind.USER_OUTPUT:
        return "result", ""
    if spec.kind is OutputKind.BUFFER_MUTATION:
        return "state", places[str(spec.target)]
    if spec.kind is OutputKind.USER_INPUT_MUTATION:
        return "input", str(spec.target)
    raise UnsupportedError(f"{name}: a program that gives {spec.kind} is not supported")


def _tensor_of(program: ExportedProgram, target: str) -> torch.Tensor:
    """A parameter, buffer or constant. UnsupportedError for what is no tensor."""
    found = program.state_dict.get(target, program.constants.get(target))
    if not isinstance(found, torch.Tensor):
        raise UnsupportedError(f"'{target}' is a {type(found).__name__}, no tensor")
    return found.detach()


def source_of(
    model: Any, samples: Samples | None, dynamic: Dynamic, name: str = ""
) -> ExportSource:
    """The source of a module, a function or an ExportedProgram.

    samples: needed but for an ExportedProgram, whose shapes are settled. Raises InputError,
    OptionError, ShapeMismatchError, UnsupportedError.
    """
    name = name or _name_of(model)
    if isinstance(model, ExportedProgram):
        return ExportSource(model, name, *axes_of(dynamic, _placeholders(model), name))
    if samples is None:
        raise InputError(f"{name}: give example inputs, or input_spec=[(name, dtype, shape), ...]")
    return export_module(model, samples, dynamic, name)


def _placeholders(program: ExportedProgram) -> dict[str, Any]:
    holders = program.graph.find_nodes(op="placeholder")
    return {node.name: value_of(node) for node in holders}


def export_module(
    model: Callable[..., Any], samples: Samples, dynamic: Dynamic, name: str
) -> ExportSource:
    """Exports a module, in eval mode, or a function. Errors as `source_of`."""
    module = model if isinstance(model, torch.nn.Module) else Function(model)
    named = samples.named(module.forward)
    axes, promised = axes_of(dynamic, named, name)
    fitted = fitting(axes, promised, named)
    parameters = inspect.signature(module.forward).parameters
    args, keywords = _split(parameters, fitted)
    shapes = _shapes_like(parameters, fitted, export_dims(axes, promised)) if axes else None
    with in_eval(module):
        try:
            program = torch.export.export(module, args, keywords, dynamic_shapes=shapes)
        except Exception as error:
            raise _explained(
                error, module, (args, keywords, shapes), name, axes, promised
            ) from error
    return ExportSource(program, name, axes, promised, inspect.signature(module.forward))


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function
        inside = getattr(function, "__self__", None)
        if isinstance(inside, torch.nn.Module):
            self.inside = inside


@contextmanager
def in_eval(module: torch.nn.Module) -> Iterator[None]:
    """What is compiled is inference: modules are in eval mode meanwhile."""
    training = [m for m in module.modules() if m.training]
    for one in training:
        one.training = False  # not eval(): modules of exported programs refuse it
    try:
        with torch.no_grad():
            yield
    finally:
        for one in training:
            one.training = True


def _split(
    parameters: Mapping[str, inspect.Parameter], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments as far as they go, the others by keyword."""
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    open_ = True
    for key, parameter in parameters.items():
        if key not in named:
            open_ = False
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args += named[key]
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            keywords |= named[key]
        elif open_ and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            args.append(named[key])
        else:
            keywords[key] = named[key]
    return tuple(args), keywords


def _shapes_like(
    parameters: Mapping[str, inspect.Parameter],
    named: Mapping[str, Any],
    dims: Mapping[str, Mapping[int, Any]],
) -> dict[str, Any]:
    """dynamic_shapes of torch.export: for every argument, in its own structure."""
    return {
        key: dict(dims[key]) if key in dims else torch.utils._pytree.tree_map(lambda _: None, value)
        for key, value in named.items()
        if parameters[key].kind is not inspect.Parameter.VAR_KEYWORD
    }


def _explained(
    error: Exception,
    module: torch.nn.Module,
    call: tuple[Any, ...],
    name: str,
    axes: Axes,
    promised: Mapping[str, Extents],
) -> Error:
    """What a user is told of an export that failed: the line that breaks a promise, or torch's own
    words."""
    said = str(error)
    if not promised or ("onstraint" not in said and "specializ" not in said):
        lines = [line for line in said.splitlines() if line.strip()]
        return UnsupportedError(f"{name}: torch.export failed: {' '.join(lines[:6])[:1500]}")
    args, keywords, shapes = call
    with recorded_guards() as record:
        try:
            torch.export.export(module, args, keywords, dynamic_shapes=shapes)
        except Exception as again:
            said = str(again)
    return violation(name, promised, axes, record, said)


def _name_of(model: Any) -> str:
    kind = model if inspect.isfunction(model) or inspect.ismethod(model) else type(model)
    return str(getattr(kind, "__name__", "module")).strip("<>").lower()
