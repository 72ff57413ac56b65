"""TorchScript: its interpreter is run on fake tensors, and what it calls is what is compiled.

Branches and loops on sizes and numbers are taken as the examples have them; a branch on the
elements of a tensor is an error, which names the line. What `forward` assigns to attributes of the
module is state: it is an input and an output of the graph.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from cuvil.errors import InputError, UnsupportedError
from cuvil.frontends.torch.call_plan import CallPlan, Target
from cuvil.frontends.torch.decompose import decompositions
from cuvil.frontends.torch.torch_source import TorchSource

__all__ = ["ScriptSource", "parameter_names", "script_source"]

Place = tuple[tuple[str, ...], str]  # submodules from the outside in, and an attribute


class ScriptSource(TorchSource):
    """A traced run of a ScriptModule or ScriptFunction; plan: how it is called."""

    def __init__(self, module: GraphModule, name: str, plan: CallPlan) -> None:
        super().__init__(module, {}, name)
        self.plan = plan


def script_source(
    model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], name: str
) -> ScriptSource:
    """Traces a run with these examples. Raises UnsupportedError, InputError."""
    if keywords:
        raise InputError(f"{name}: examples of TorchScript are positional")
    run = _Run(model, args, name)
    leaves, inside = tree_flatten((args, {}))
    numbers = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = [leaves[k] for k in numbers]

    def flat(*given: torch.Tensor) -> list[Any]:
        states, passed = given[: len(run.states)], given[len(run.states) :]
        found = list(leaves)
        for k, x in zip(numbers, passed, strict=True):
            found[k] = x
        return [*run.call(states, tree_unflatten(found, inside)[0])]

    module, written = _traced(flat, (*run.states.values(), *tensors), name)
    labels = ["_".join((*path, attribute)).strip("_") for path, attribute in run.states]
    _rename(module, [*labels, *_parameters(model, inside, numbers)])
    holders = [n.name for n in module.graph.find_nodes(op="placeholder")]
    states = dict(zip(holders, run.states.values(), strict=False))
    outputs: list[Target] = [("state", p) for p in states]
    outputs += [("result", "")] * run.outside.num_leaves
    outputs += [("input", holders[k]) if k >= len(states) else ("nothing", "") for k in written]
    inputs = _with_numbers(leaves, holders[len(states) :])
    fixed = {k: x for k, x in enumerate(leaves) if not isinstance(x, torch.Tensor)}
    plan = CallPlan(inputs, inside, run.outside, outputs, fixed, states)
    return ScriptSource(module, name, plan)


def _rename(module: GraphModule, labels: Sequence[str]) -> None:
    """Calls the inputs as the user's source calls them."""
    for node, label in zip(module.graph.find_nodes(op="placeholder"), labels, strict=True):
        node._rename(label)
        node.target = node.name
    module.recompile()


def parameter_names(model: Any) -> list[str]:
    """What the parameters of a ScriptModule or ScriptFunction are called."""
    method: Any = model.forward if isinstance(model, torch.jit.ScriptModule) else model
    return [a.name for a in method.schema.arguments if a.name != "self"]


def _parameters(model: Any, inside: Any, numbers: Sequence[int]) -> list[str]:
    """Names of the parameters that are tensors, where each is one; else numbers."""
    names = parameter_names(model)
    plain = inside.child(0).num_leaves == inside.child(0).num_children
    return [names[k] if plain and k < len(names) else f"x{k}" for k in numbers]


def _with_numbers(leaves: Sequence[Any], holders: Sequence[str]) -> list[str]:
    """The placeholders of tensors; "" for what the graph has as it is."""
    rest = iter(holders)
    return [next(rest) if isinstance(x, torch.Tensor) else "" for x in leaves]


def _traced(
    function: Any, inputs: Sequence[torch.Tensor], name: str
) -> tuple[GraphModule, list[int]]:
    """ATen calls without in-place writes, taken apart as the importer needs them; and the numbers
    of the inputs that are written to, whose values are its last outputs."""

    def trace(what: Any, table: Any = None) -> GraphModule:
        traced = make_fx(what, table, tracing_mode="fake", _allow_non_fake_inputs=True)(*inputs)
        assert isinstance(traced, GraphModule)
        return traced

    try:
        with torch.no_grad():
            calls = trace(torch.func.functionalize(function))
            pure = trace(torch.func.functionalize(calls))  # what C++ wrote in place, too
            written = _give_written(pure)
            found = trace(pure, decompositions())
        found.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    except RuntimeError as error:
        raise UnsupportedError(f"{name}: {_reason(error)}") from error
    return found, written


def _give_written(module: GraphModule) -> list[int]:
    """Makes what is written to inputs outputs behind the others; gives the inputs' numbers."""
    graph = module.graph
    holders = graph.find_nodes(op="placeholder")
    (last,) = graph.find_nodes(op="output")
    written: dict[int, Any] = {}
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        if node.args[0] in holders:
            written[holders.index(node.args[0])] = node.args[1]
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
    last.args = ([*last.args[0], *written.values()],)
    module.recompile()
    return list(written)


def _reason(error: RuntimeError) -> str:
    """The interpreter's words: what it was doing and where."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    shown = [line.strip() for line in lines if "Traceback" not in line and "~" not in line]
    if "DataDependent" in str(error):
        shown.insert(0, "a branch depends on the elements of a tensor")
    return "; ".join(shown[:6])[:600]


class _Run:
    """A copy of a module, whose attributes that a run assigns are passed and given back."""

    def __init__(self, model: Any, args: tuple[Any, ...], name: str) -> None:
        self.name = name
        places = _assigned(model)
        self.model = copy.deepcopy(model) if places else model
        self.states: dict[Place, torch.Tensor] = {}
        with torch.no_grad():
            result = self.model(*args)
            if places:
                self._settle(model, places, args, result)
        _, self.outside = tree_flatten(result)

    def _settle(
        self, model: Any, places: Sequence[Place], args: tuple[Any, ...], first: Any
    ) -> None:
        """Finds the attributes that are tensors, once they have the shapes that they keep.

        The run from a fresh module must be the run from zeros (or from what was there before).
        """
        before, settled = _values(model, places), _values(self.model, places)
        self.model(*args)
        after = _values(self.model, places)
        for place, value in settled.items():
            if not _alike(value, after[place]):
                label = ".".join((*place[0], place[1]))
                raise UnsupportedError(f"{self.name}: the attribute '{label}' changes its shape")
            if isinstance(value, torch.Tensor):
                was = before[place]
                same = isinstance(was, torch.Tensor) and _alike(was, value)
                self.states[place] = was.clone() if same else torch.zeros_like(value)
        again = self.call(list(self.states.values()), args)[len(self.states) :]
        expected = tree_flatten(first)[0]
        if not all(map(_equal, again, expected)):
            raise UnsupportedError(
                f"{self.name}: the first run does otherwise than a run whose state is zeros"
            )

    def call(self, states: Sequence[torch.Tensor], args: tuple[Any, ...]) -> list[Any]:
        """The states after a run, then the flat results."""
        for (path, attribute), value in zip(self.states, states, strict=True):
            setattr(_inside(self.model, path), attribute, value)
        results = tree_flatten(self.model(*args))[0]
        return [*_values(self.model, list(self.states)).values(), *results]


def _assigned(model: Any) -> list[Place]:
    """The attributes that `forward` assigns, of the module and those inside it."""
    if not isinstance(model, torch.jit.ScriptModule):
        return []
    found: dict[Place, None] = {}
    graph: Any = model.inlined_graph  # nodes live as long as it does
    for node in graph.findAllNodes("prim::SetAttr", recurse=True):
        path, owner = [], next(node.inputs()).node()
        while owner.kind() == "prim::GetAttr":
            path.append(owner.s("name"))
            owner = next(owner.inputs()).node()
        found[tuple(reversed(path)), node.s("name")] = None
    return list(found)


def _inside(model: Any, path: Sequence[str]) -> Any:
    for name in path:
        model = getattr(model, name)
    return model


def _values(model: Any, places: Sequence[Place]) -> dict[Place, Any]:
    return {(path, name): getattr(_inside(model, path), name) for path, name in places}


def _alike(a: Any, b: Any) -> bool:
    """Whether two values are the same to a trace: numbers equal, tensors of one type."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype
    return type(a) is type(b) and bool(a == b)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return torch.equal(a, b) or (a.is_floating_point() and torch.allclose(a, b, 1e-4, 1e-5))
    return bool(a == b)
