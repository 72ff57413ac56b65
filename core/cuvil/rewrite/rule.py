"""A rule is data: where it looks, what it makes, and examples of when it fires and when not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.ir.build import Builder
from cuvil.ir.dims import parse_dim
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.names import Operation, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import PRIMITIVES
from cuvil.ir.types import TensorType
from cuvil.rewrite.rewriter import Rewriter

PHASES = ("canonicalize", "fuse", "layout", "precision", "weights")
Result = Value | Sequence[Value] | Mapping[Value, Value] | None
Apply = Callable[[Rewriter, Operation], Result]


@dataclass(frozen=True)
class Case:
    """A small graph: `build(b, *inputs)` returns its output or outputs.

    inputs: name -> type, written as in messages: "[2, B] f32".
    """

    build: Callable[..., Any]
    inputs: Mapping[str, str]

    def graph(self) -> Graph:
        """The graph, with a pool of its own."""
        types = {name: parse_type(text) for name, text in self.inputs.items()}
        graph = new_graph("case", types, Pool())
        made = self.build(Builder(graph.block, graph.pool, "case"), *graph.inputs)
        outputs = made if isinstance(made, tuple) else (made,)
        return finish_graph(graph, {f"out{i}": v for i, v in enumerate(outputs)})


def case(build: Callable[..., Any], **inputs: str) -> Case:
    """`case(lambda b, x: b.neg(x), x="[2, B] f32")`."""
    return Case(build, inputs)


def parse_type(text: str) -> TensorType:
    """The tensor type written as "[2, B*S] f32"."""
    dims, _, element = text.strip().removeprefix("[").partition("]")
    return TensorType.of([parse_dim(d) for d in dims.split(",") if d.strip()], element.strip())


def sample(*shape: int, seed: int = 0, dtype: str = "f4") -> np.ndarray[Any, Any]:
    """Seeded values in [0.5, 1.5) for the constants of examples."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(dtype)


@dataclass(frozen=True)
class Rule:
    """One rule.

    name: that of its function and of its file. phase: its folder. roots: names of primitives at
    which `apply` is tried; "#tag" stands for all with that tag. apply: gives the values that
    replace the root's results (or a mapping from old to new values, all old ones made at or after
    the root), or None; it builds with the Rewriter and changes nothing itself.
    group: the name by which users select it along with others ("" belongs to every selection).
    on: applied unless asked for by name when False. tolerance: relative change of numbers.
    """

    name: str
    phase: str
    roots: tuple[str, ...]
    apply: Apply
    examples: tuple[Case, ...]
    near_misses: tuple[Case, ...]
    group: str = ""
    on: bool = True
    tolerance: float = 0.0
    doc: str = ""

    def root_names(self) -> set[str]:
        """The primitives at which the rule is tried."""
        found: set[str] = set()
        for root in self.roots:
            if root == "*":
                found |= set(PRIMITIVES)
            elif root.startswith("#"):
                found |= {n for n, record in PRIMITIVES.items() if root[1:] in record.tags}
            else:
                found.add(root)
        return found


Cases = Case | Sequence[Case]
GROUPS = {
    "canonicalize": "",
    "fuse": "fuse_norm_act",
    "layout": "memory_packing",
    "precision": "",
    "weights": "",
}


def make_rule(
    function: Callable[..., Any],
    roots: Sequence[str],
    apply: Apply,
    example: Cases,
    near_miss: Cases,
    phase: str | None = None,
    group: str | None = None,
    on: bool = True,
    tolerance: float = 0.0,
) -> Rule:
    """The record of a rule written as `function`; its module gives phase and expected name."""
    *_, folder, module = ("", *function.__module__.split("."))
    phase = phase or folder
    if phase not in PHASES:
        raise ValueError(f"rule {function.__name__}: phase '{phase}' is none of {PHASES}")
    if function.__module__.startswith("cuvil.rules.") and module != function.__name__:
        raise ValueError(f"rule {function.__name__} must stand in a file of its name")
    return Rule(
        name=function.__name__,
        phase=phase,
        roots=tuple(roots),
        apply=apply,
        examples=(example,) if isinstance(example, Case) else tuple(example),
        near_misses=(near_miss,) if isinstance(near_miss, Case) else tuple(near_miss),
        group=GROUPS[phase] if group is None else group,
        on=on,
        tolerance=tolerance,
        doc=(function.__doc__ or "").strip(),
    )


def rule(*roots: str, example: Cases, near_miss: Cases, **more: Any) -> Callable[[Apply], Rule]:
    """Makes a function `(b, op) -> value, values or None` a rule; see `Rule` and `make_rule`."""
    return lambda function: make_rule(function, roots, function, example, near_miss, **more)
