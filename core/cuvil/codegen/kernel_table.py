"""The table of fast kernels: each row is an op that a generator writes the loops of.

Core's rows serve every CPU by its facts; a backend may put its own in front. A row's cases are its
test and its benchmark: see `tests/kernels` and `tools/bench/kernels.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.template_llvm import (
    Choices,
    Emit,
    attention_choices,
    contract_choices,
    depthwise_choices,
    emit_attention,
    emit_contract,
    emit_depthwise,
    emit_few_rows,
    emit_lookup,
    emit_winograd,
)
from cuvil.plan.templates import (
    Template,
    attention,
    contract,
    depthwise,
    few_rows,
    lookup,
    winograd,
)
from cuvil.plan.templates import narrow as narrow_contract


@dataclass(frozen=True)
class KernelCase:
    """One op to try a row on. operands: extents of tensors of `dtype`; constants: which of them are
    known when the model is compiled, by position."""

    op: str
    operands: tuple[tuple[int, ...], ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[int, ...] = ()
    dtype: str = "f32"


def _always(facts: TargetFacts) -> bool:
    return True


@dataclass(frozen=True)
class KernelRow:
    """A fast kernel.

    kind: of the `nest.template` that it is for. emit: writes its code; tile sizes are its own to
    choose, from the facts. template: which ops become such a template, with their dtypes and
    conditions (None: another row's template, for which this one has better code). when: the facts
    of the targets that it serves. worth: of the best target of a plan, for which the template is
    better than others, or than none. choices: how else it
    could cut a template, for tuning.
    """

    kind: str
    emit: Emit
    template: Template | None = None
    when: Callable[[TargetFacts], bool] = _always
    cases: tuple[KernelCase, ...] = ()
    worth: Callable[[TargetFacts], bool] = _always
    choices: Choices = lambda template, facts, slots: ()


def _scalar(facts: TargetFacts) -> bool:
    return facts.scalar


def _vectors(facts: TargetFacts) -> bool:
    return not facts.scalar


def _picks(facts: TargetFacts) -> bool:
    return facts.picks_bytes


def usable(rows: Sequence[KernelRow], targets: Sequence[TargetFacts]) -> list[KernelRow]:
    """The rows that a target has a use for, of kinds that every one has a row for: a plan is made
    once for all of them."""
    served = {
        kind
        for kind in {row.kind for row in rows}
        if all(any(r.kind == kind and r.when(facts) for r in rows) for facts in targets)
    }
    return [row for row in rows if row.kind in served and any(map(row.when, targets))]


def templates_of(rows: Sequence[KernelRow], targets: Sequence[TargetFacts]) -> list[Template]:
    """The templates of rows that serve every target, in order, as they suit the first target, which
    is the best: what one lays out for itself may not suit another."""
    best = targets[0]
    served = [row for row in rows if row.template is not None and all(map(row.when, targets))]
    return [row.template for row in served if row.template is not None and row.worth(best)]


def row_for(rows: Sequence[KernelRow], kind: str, facts: TargetFacts) -> KernelRow:
    """The first row that has code of this kind for a target."""
    return next(row for row in rows if row.kind == kind and row.when(facts))


_MATRICES = (
    KernelCase("contract", ((37, 40), (40, 45)), {"spec": "ab,bc->ac"}, (1,)),
    KernelCase("contract", ((3, 17, 32), (3, 32, 20)), {"spec": "xab,xbc->xac"}),
    KernelCase("contract", ((1, 300), (300, 7)), {"spec": "ab,bc->ac"}, (1,)),
)
_FEW_ROWS = (
    KernelCase("contract", ((1, 300), (300, 331)), {"spec": "ab,bc->ac"}),
    KernelCase("contract", ((3, 2, 75), (3, 75, 19)), {"spec": "xab,xbc->xac"}),
    KernelCase("contract", ((3, 75), (61, 75)), {"spec": "ab,cb->ac"}),
    KernelCase("contract", ((45, 300), (300,)), {"spec": "cb,b->c"}),
)
_IMAGES = (
    KernelCase(
        "conv", ((1, 9, 11, 16), (24, 16, 3, 3)),
        {"layout": "channels_last", "strides": (2, 1), "dilations": (1, 1), "pads": (0,) * 4,
         "groups": 1}, (1,),
    ),
)  # fmt: skip
_TILES = tuple(
    KernelCase(
        "conv", (image, taps),
        {"layout": "channels_last", "strides": (1, 1), "dilations": (1, 1), "pads": (0,) * 4,
         "groups": 1}, (1,),
    )
    for image, taps in (
        ((2, 15, 19, 32), (40, 32, 3, 3)),
        ((1, 9, 9, 64), (72, 64, 3, 3)),
    )
)  # fmt: skip
_CHANNELS = (
    KernelCase(
        "conv", ((2, 9, 11, 40), (40, 1, 3, 3)),
        {"layout": "channels_last", "strides": (1, 2), "dilations": (1, 1), "pads": (0,) * 4,
         "groups": 40}, (1,),
    ),
)  # fmt: skip
_QUERIES = (
    KernelCase(
        "attention", ((2, 3, 17, 16), (2, 3, 33, 16), (2, 3, 33, 24)), {"scale": 0.25}
    ),
)  # fmt: skip
_BYTES = (KernelCase("lookup", ((3, 1000), (256,)), constants=(1,), dtype="u8"),)

CORE_ROWS: tuple[KernelRow, ...] = (
    KernelRow(
        "depthwise", emit_depthwise, cast(Template, depthwise), cases=_CHANNELS,
        choices=depthwise_choices,
    ),
    KernelRow("winograd", emit_winograd, cast(Template, winograd), cases=_TILES, worth=_vectors),
    KernelRow(
        "few_rows", emit_few_rows, cast(Template, few_rows), cases=_FEW_ROWS, worth=_vectors
    ),
    KernelRow("contract", emit_contract, cast(Template, narrow_contract), _scalar, _MATRICES[:1]),
    KernelRow(
        "contract", emit_contract, cast(Template, contract), cases=_MATRICES + _IMAGES,
        choices=contract_choices,
    ),
    KernelRow(
        "attention", emit_attention, cast(Template, attention), cases=_QUERIES, worth=_vectors,
        choices=attention_choices,
    ),
    KernelRow("lookup", emit_lookup, cast(Template, lookup), cases=_BYTES, worth=_picks),
)  # fmt: skip
