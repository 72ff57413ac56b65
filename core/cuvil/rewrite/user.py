"""Fusions that users name: a Python function of tensors says what to match.

    @cuvil.fusion_pattern("matmul_add_gelu")
    def matmul_add_gelu(a, b, c):
        return cuvil.op.gelu(cuvil.op.matmul(a, b) + c)

The function is traced for every choice of ranks of its arguments and rewritten by the same rules
as graphs, so that it is met in whatever form the rules leave. Ops that match carry the hint
`cuvil.fuse = "name#i"`: they are to be one kernel, if the planner can make one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from itertools import product
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from cuvil.errors import Error, OptionError
from cuvil.ir.attrs import Attrs
from cuvil.ir.build import Builder, location_name
from cuvil.ir.dims import symbol
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.record import attrs_of, of
from cuvil.ir.types import TensorType
from cuvil.ops.contract import parse
from cuvil.rewrite import op
from cuvil.rewrite.engine import run_phases
from cuvil.rewrite.match import match
from cuvil.rewrite.traced import Tensor
from cuvil.rewrite.tree import Capture, Expr, Literal, Node
from cuvil.rewrite.values import has_record, is_constant, name_of, number, owner

__all__ = [
    "PATTERNS",
    "PatternReport",
    "UserPattern",
    "fuse_hint",
    "fusion_pattern",
    "mark",
    "op",
    "op_fusion",
]

HINT = "cuvil.fuse"
MAX_RANK = 4
MAX_TRACES = 256  # choices of ranks that are tried
PATTERNS: dict[str, UserPattern] = {}


@dataclass(frozen=True)
class UserPattern:
    """A fusion: its name, what to match, and the element type it is limited to, if any."""

    name: str
    function: Callable[..., Any]
    dtype: str | None = None

    @cached_property
    def forms(self) -> tuple[Node, ...]:
        """What to look for, one form per way in which ranks change it.

        OptionError where the function cannot be traced for any ranks.
        """
        names = list(signature(self.function).parameters)
        found: dict[str, Node] = {}
        reason: Exception = ValueError("it takes no tensors")
        ranks = sorted(product(range(1, MAX_RANK + 1), repeat=len(names)), key=_spread)
        for choice in ranks[:MAX_TRACES]:
            try:
                form = _form(_traced(self.function, dict(zip(names, choice, strict=True)), self))
                found.setdefault(repr(form), form)
            except (ValueError, Error) as error:
                reason = error
        if not found:
            raise OptionError(f"fusion pattern '{self.name}': {reason}")
        return tuple(found.values())


@dataclass
class PatternReport:
    """Where a pattern was found; nearest: how the closest candidate differs, where it was not."""

    name: str
    places: list[str] = field(default_factory=list)
    nearest: str = ""


def fusion_pattern(
    name: str, dtype: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as a pattern. OptionError for a name that another function has."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        known = PATTERNS.get(name)
        if known is not None and known.function.__qualname__ != function.__qualname__:
            raise OptionError(f"two fusion patterns are called '{name}'")
        PATTERNS[name] = UserPattern(name, function, dtype)
        return function

    return register


op_fusion = fusion_pattern


def fuse_hint(op: Operation) -> str | None:
    """The "name#i" of the user's fusion that an op is part of."""
    hint = op.attributes.get(HINT)
    return hint.data if isinstance(hint, StringAttr) else None


def mark(graph: Graph, patterns: Sequence[UserPattern]) -> list[PatternReport]:
    """Marks every match in a graph that all phases have rewritten; an op is part of one only."""
    ops = [op for op in graph.ops() if has_record(op)]
    return [_mark(pattern, ops) for pattern in patterns]


def _mark(pattern: UserPattern, ops: Sequence[Operation]) -> PatternReport:
    report = PatternReport(pattern.name)
    for root in reversed(ops):
        for form in pattern.forms:
            if name_of(root) != form.name or not _has_dtype(root, pattern.dtype):
                continue
            found = match(form, root)
            if found is not None and not any(fuse_hint(o) for o in found.ops):
                hint = StringAttr(f"{pattern.name}#{len(report.places)}")
                for matched in found.ops:
                    matched.attributes[HINT] = hint
                report.places.append(location_name(root))
    if not report.places:
        report.nearest = _nearest(pattern, ops)
    return report


def _has_dtype(op: Operation, dtype: str | None) -> bool:
    return dtype is None or all(r.type.dtype.name == dtype for r in op.results)  # type: ignore[attr-defined]


# -- tracing -------------------------------------------------------------------------------------


def _spread(ranks: Sequence[int]) -> tuple[int, int]:
    """Common choices first: ranks that differ little, and low ones."""
    return max(ranks, default=0) - min(ranks, default=0), sum(ranks)


def _traced(function: Callable[..., Any], ranks: dict[str, int], pattern: UserPattern) -> Graph:
    """The function on tensors of these ranks, rewritten as graphs are.

    Axes counted from the last share a symbol, so that operands broadcast as they do in models.
    """
    types = {
        name: TensorType.of(
            [symbol(f"axis{i}") for i in range(rank, 0, -1)], pattern.dtype or "f32"
        )
        for name, rank in ranks.items()
    }
    graph = new_graph(pattern.name, types, Pool())
    b = Builder(graph.block, graph.pool, pattern.name)
    result = function(*(Tensor(b, value) for value in graph.inputs))
    if not isinstance(result, Tensor):
        raise ValueError("a fusion pattern returns one tensor made of its arguments")
    finish_graph(graph, {"result": result.value})
    run_phases(graph)
    return graph


def _form(graph: Graph) -> Node:
    """The graph's output as a pattern; views at its edges belong to the neighbours."""
    root = graph.outputs[0]
    while (op := owner(root)) is not None and name_of(op) in ("transpose", "reshape"):
        root = op.operands[0]
    names = dict(zip(graph.inputs, graph.input_names, strict=True))
    form = _expr(root, names)
    if not isinstance(form, Node):
        raise ValueError("a fusion pattern must compute something")
    return form


def _expr(value: SSAValue, names: dict[SSAValue, str]) -> Expr:
    if value in names:
        return Capture(names[value])
    op = owner(value)
    assert op is not None
    if is_constant(value):
        known = number(value)
        if known is None:
            raise ValueError("a fusion pattern may hold numbers, but no other constants")
        return Literal(float(known))
    operands = tuple(_expr(v, names) for v in op.operands)
    if name_of(op) in ("transpose", "reshape") and isinstance(operands[0], Capture):
        return operands[0]
    return Node(name_of(op), operands, tuple(_attrs(op, attrs_of(op))))


def _attrs(op: Operation, attrs: Attrs) -> Iterator[tuple[str, Any]]:
    """Attributes that say what is computed; dims say only on what."""
    for name, attr in of(op).attrs.items():
        value = getattr(attrs, name)
        if name == "spec":
            yield name, _Letters(value)
        elif attr.kind not in ("dims", "dim") and value is not None:
            yield name, value


@dataclass(frozen=True, eq=False)
class _Letters:
    """A contraction's letters, equal to any renaming of them."""

    spec: str

    def __eq__(self, other: object) -> bool:
        text = other.spec if isinstance(other, _Letters) else str(other)
        return _renamed(self.spec) == _renamed(text)

    def __hash__(self) -> int:
        return hash(_renamed(self.spec))


def _renamed(text: str) -> tuple[tuple[int, ...], ...]:
    spec = parse(text)
    order = {c: i for i, c in enumerate(dict.fromkeys(spec.a + spec.b + spec.out))}
    return tuple(tuple(order[c] for c in part) for part in spec)


# -- the nearest miss ----------------------------------------------------------------------------


def _nearest(pattern: UserPattern, ops: Sequence[Operation]) -> str:
    best = (0, "")
    for root in ops:
        for form in pattern.forms:
            count, why = _likeness(form, root)
            if count > best[0]:
                best = count, f"at {location_name(root)} {count} ops match, {why}"
    return best[1] or "no op of the graph is like any of the pattern's"


def _likeness(form: Node, op: Operation) -> tuple[int, str]:
    """How many nodes match from the root on, and the first difference."""
    if name_of(op) != form.name or len(op.operands) != len(form.operands):
        return 0, f"but {form.name} is expected where {name_of(op)} of {location_name(op)} is"
    attrs = attrs_of(op)
    for name, want in form.attrs:
        if want != getattr(attrs, name):
            return 0, f"but {name} of {location_name(op)} is {getattr(attrs, name)}, not {want}"
    total, why = 1, ""
    for part, value in zip(form.operands, op.operands, strict=True):
        maker = owner(value)
        if not isinstance(part, Node):
            continue
        if maker is None or not has_record(maker):
            why = why or f"but {part.name} is expected where an input is"
            continue
        count, reason = _likeness(part, maker)
        total, why = total + count, why or reason
    return total, why or "but an inner value is used elsewhere too"
