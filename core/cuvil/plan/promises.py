"""Promised extents: a graph must keep them all; a run checks what its caller promised."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

from cuvil.errors import ShapeMismatchError
from cuvil.extents import Extents
from cuvil.ir.build import location_name
from cuvil.ir.dims import evaluate, symbol, symbols
from cuvil.ir.graph import Graph
from cuvil.ir.names import Operation
from cuvil.ir.record import tensor_type
from cuvil.plan.conditions import Condition, conditions
from cuvil.plan.steps import Check

MOST = 4096  # combinations of extents that are looked at, per condition: of long ranges, the ends

__all__ = ["check_promises", "promise_steps"]


def check_promises(graph: Graph) -> None:
    """ShapeMismatchError naming the node that extents break which `graph.declared` promises.

    Conditions are on extents, such as operands that must agree; those that mention a symbol
    without a promise are left to the run.
    """
    for op in graph.block.ops if graph.declared else ():
        for condition in conditions(op, graph.bounds):
            names = sorted({*symbols(condition.left), *symbols(condition.right)})
            if names and graph.declared.keys() >= set(names):
                _check(op, condition, {n: graph.declared[n] for n in names})


def _check(op: Operation, condition: Condition, declared: Mapping[str, Extents]) -> None:
    for values in product(*_samples(declared)):
        env = dict(zip(declared, values, strict=True))
        left, right = (evaluate(side, env) for side in (condition.left, condition.right))
        if not (left == right if condition.equal else left >= right):
            at = ", ".join(f"{n} = {v}" for n, v in env.items())
            said = "; ".join(f"{n} = {e}" for n, e in declared.items())
            raise ShapeMismatchError(
                f"{location_name(op)} ({op.name.removeprefix('cuvil.')}) needs {condition}, which "
                f"{at} breaks ({left} and {right}); dynamic_shapes promises {said}"
            )


def _samples(declared: Mapping[str, Extents]) -> Iterator[list[int]]:
    each = max(2, math.floor(MOST ** (1 / len(declared))))
    for low, high, step in declared.values():
        top = low + 2 * MOST * step if high is None else high
        values = range(low, top + 1, step)
        half = each // 2
        yield list(values) if len(values) <= each else [*values[:half], *values[-half:]]


def promise_steps(graph: Graph) -> list[Check]:
    """Checks of promised divisors; ranges are the runtime's own to check."""
    return [
        Check(symbol(name) % extents.multiple, 0, True, f"check\t{_place(graph, name)}")
        for name, extents in graph.declared.items()
        if extents.multiple > 1
    ]


def _place(graph: Graph, name: str) -> str:
    """For the message of a run: where a caller gives the symbol, and what was promised."""
    rule = f"{name} must be a multiple of {graph.declared[name].multiple}"
    for port, value in zip(graph.input_names, graph.inputs, strict=True):
        for axis, dim in enumerate(tensor_type(value).dims):
            if dim == symbol(name):
                return f"dim {axis} of input '{port}': {rule}"
    return rule
