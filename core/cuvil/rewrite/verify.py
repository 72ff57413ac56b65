"""What a graph may look like after each phase, as a check that tests and tools run.

Structure holds always: every op's types are what its record infers, and every operand is made
before it is used. Forms hold after a phase that ran with all of its rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from cuvil.errors import CompileError
from cuvil.ir.build import location_name
from cuvil.ir.graph import Graph
from cuvil.ir.record import attrs_of, of
from cuvil.ops.scalars import SCALARS
from cuvil.rewrite.rule import PHASES
from cuvil.rewrite.values import has_record, is_constant, name_of, owner


@dataclass(frozen=True)
class Form:
    """A form that must not be left after `phase` and the phases behind it."""

    phase: str
    what: str
    found: Callable[[Operation], bool]


def _made_by(value: SSAValue, name: str) -> bool:
    op = owner(value)
    return op is not None and name_of(op) == name


def _is(op: Operation, *names: str) -> bool:
    return name_of(op) in names


def _commutes(op: Operation) -> bool:
    return name_of(op) in SCALARS and SCALARS[name_of(op)].commutative


FORMS = (
    Form("canonicalize", "an identity", lambda op: _is(op, "identity")),
    Form("canonicalize", "an unused op", lambda op: not any(r.uses for r in op.results)),
    Form(
        "canonicalize",
        "a constant left of a value",
        lambda op: (
            _commutes(op) and is_constant(op.operands[0]) and not is_constant(op.operands[1])
        ),
    ),
    Form(
        "canonicalize",
        "a view of a view of its kind",
        lambda op: (
            _is(op, "transpose", "broadcast", "slice")
            and _made_by(op.operands[0], name_of(op))
            and op.parent is op.operands[0].owner.parent
        ),
    ),
    Form(
        "canonicalize",
        "a convolution with a bias",
        lambda op: _is(op, "conv", "conv_transpose") and len(op.operands) > 2,
    ),
    Form(
        "canonicalize",
        "a reduction that drops axes",
        lambda op: _is(op, "reduce") and not attrs_of(op).keepdims,
    ),
    Form(
        "layout",
        "channels that are not last",
        lambda op: (
            _is(op, "conv", "conv_transpose", "pool") and attrs_of(op).layout != "channels_last"
        ),
    ),
    Form("layout", "pads in a convolution", lambda op: _is(op, "conv") and any(attrs_of(op).pads)),
)


def verify_structure(graph: Graph) -> None:
    """Raises CompileError for types that do not fit or a value used before it is made."""
    try:
        graph.module.verify()
    except VerifyException as error:
        raise CompileError(f"graph {graph.name}: {error}") from error
    _verify_order(graph.block, set())


def _verify_order(block: Block, outer: set[SSAValue]) -> None:
    seen = outer | set(block.args)
    for op in block.ops:
        for value in op.operands:
            if value not in seen:
                raise CompileError(f"{op.name} of {location_name(op)} uses a value made after it")
        for region in op.regions:
            for inner in region.blocks:
                _verify_order(inner, seen)
        seen.update(op.results)


def verify_phase(graph: Graph, phase: str) -> None:
    """As `verify_structure`; also CompileError for a form that `phase` does not leave."""
    verify_structure(graph)
    done = PHASES[: PHASES.index(phase) + 1]
    forms = [form for form in FORMS if form.phase in done]
    for op in graph.ops():
        if not has_record(op) or not of(op).pure:
            continue
        for form in forms:
            if form.found(op):
                raise CompileError(
                    f"{op.name} of {location_name(op)}: {form.what} after phase {phase}"
                )
