"""`torch.compile(m, backend="cuvil")`: dynamo's graphs, taken apart by AOTAutograd, to engines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch._dynamo.exc import RestartAnalysis
from torch._functorch._aot_autograd.schemas import OutputType
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import TracingContext
from torch.fx import GraphModule

from cuvil.frontends.torch import decompositions
from cuvil.integrations.torch_compile.compiled import Compiled
from cuvil.integrations.torch_compile.observe import is_watched
from cuvil.integrations.torch_compile.overlap import apart
from cuvil.integrations.torch_compile.recall import graph_key, recall, remember
from cuvil.integrations.torch_compile.settings import Settings

__all__ = ["backend"]

Observer = Callable[[GraphModule], None]


class GradientWarning(UserWarning):
    """A graph ran in eager because gradients were on."""


def backend(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """What dynamo calls for every graph: a function with the graph's inputs and outputs.

    options: see `Settings`; mode is torch's own word for effort and changes nothing. Where
    gradients are asked for the graph comes back as it is. Compiling happens at the first call,
    which raises cuvil.Error where `fallback="error"` and a node is not supported.
    """
    settings = Settings.of(options)
    if wants_gradients(example_inputs):
        _warn_of_gradients(module)
        return module.forward
    guard_numbers(example_inputs)
    statics = frozenset(map(id, static_tensors(module, example_inputs)))
    known = settings.cache and not is_watched()
    key = graph_key(module, example_inputs, statics) if known else None
    lower = partial(lowered, module, settings=settings, statics=statics, key=key)
    quick = None if key is None else recall(key, example_inputs, statics, settings)
    return lower(example_inputs) if quick is None else recalled(quick, lower)


def lowered(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    settings: Settings,
    statics: frozenset[int],
    key: str | None,
) -> Callable[..., Any]:
    """A captured graph by way of AOTAutograd. key: what is remembered of it, where it may be."""
    compiler = partial(Compiled, settings=settings, statics=statics, origin=module)
    written: set[int] = set()
    direct: list[Compiled] = []

    def compile_inference(gm: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        places = written_inputs()
        written.update(places)
        made = compiler(gm, written=places)
        if is_functional(gm, len(inputs)):
            direct.append(made)
        return made

    try:
        compiled: Callable[..., Any] = aot_module_simplified(
            module,
            list(inputs),
            fw_compiler=compile_inference,
            inference_compiler=compile_inference,
            decompositions=decompositions(),
        )
    except RestartAnalysis:  # a number has become part of the graph: dynamo traces it once more
        raise
    except Exception as error:  # torch's own, of any class: it cannot take the graph apart
        if settings.fallback == "error":
            raise
        compiler(module).give_up(f"torch cannot lower it: {error}")
        return module.forward
    if direct:
        return quickly(direct[0], compiled, key)
    return apart(compiled, module.forward, written) if written else compiled


def quickly(made: Compiled, compiled: Callable[..., Any], key: str | None) -> Callable[..., Any]:
    """Calls the engine without AOTAutograd's wrapper, and with it where the engine declines.
    key: under which what was made is remembered after the first call."""
    if key is not None:
        made.made = partial(remember, key, made.module)

    def run(*args: Any) -> Any:
        found = made.quick(args)
        return compiled(*args) if found is None else found

    return run


def recalled(
    quick: Callable[..., Any], lower: Callable[[Sequence[Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """Calls an engine from the cache; the graph is lowered once a call needs more."""
    rest: list[Callable[..., Any]] = []

    def run(*args: Any) -> Any:
        found = None if rest else quick(args)
        if found is not None:
            return found
        if not rest:
            rest.append(lower(args))
        return rest[0](*args)

    return run


def is_functional(graph: GraphModule, count: int) -> bool:
    """Whether a graph takes the `count` arguments of a call as they are, writes to none of them,
    and gives what the call is to give: AOTAutograd's wrapper has nothing to do then."""
    facts = _facts()
    return (
        facts is not None
        and len(graph.graph.find_nodes(op="placeholder")) == count
        and not any(i.mutates_data or i.mutates_metadata for i in facts.input_info)
        and all(o.output_type is OutputType.non_alias for o in facts.output_info)
        and not facts.num_intermediate_bases
        and not facts.tokens
        and not facts.dynamic_outputs
        and not facts.is_rng_op_functionalized
    )


def wants_gradients(inputs: Sequence[Any]) -> bool:
    """Whether autograd would record what is computed with these."""
    return torch.is_grad_enabled() and any(
        isinstance(x, torch.Tensor) and x.requires_grad for x in inputs
    )


def guard_numbers(inputs: Sequence[Any]) -> None:
    """Guards that numbers among the arguments are not negative, which symbols of compiled code
    never are; one that is becomes part of the graph."""
    for x in inputs:
        if isinstance(x, torch.SymInt) and not x >= 0:
            int(x)


def static_tensors(module: GraphModule, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The parameters and buffers among the inputs: they are the same objects at every call."""
    holders = module.graph.find_nodes(op="placeholder")
    return [
        x
        for node, x in zip(holders, inputs, strict=True)
        if isinstance(x, torch.nn.Parameter)
        or (node.meta.get("tensor_dict") or {}).get("_dynamo_static_input_type")
    ]


def written_inputs() -> frozenset[int]:
    """Places of the inputs that the graph under compilation writes to: they are no constants."""
    facts = _facts()
    infos = facts.input_info if facts is not None else []
    return frozenset(k for k, info in enumerate(infos) if info.mutates_data)


def _facts() -> Any:
    """What AOTAutograd knows of the graph under compilation, or None."""
    context = TracingContext.try_get()
    return context.fw_metadata if context is not None else None


def _warn_of_gradients(module: GraphModule) -> None:
    warnings.warn(
        "backend 'cuvil' compiles inference: a graph that records gradients runs in eager; "
        "call the model under torch.no_grad() or torch.inference_mode()",
        GradientWarning,
        stacklevel=2,
    )
