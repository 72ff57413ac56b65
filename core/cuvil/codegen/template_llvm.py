"""`nest.template` to the generators of kernels: each with its specs and its ways to cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from llvmlite import ir

from cuvil.codegen import attention, depthwise, few_rows, lookup, winograd
from cuvil.codegen.contraction.cut import task_count
from cuvil.codegen.contraction.epilogue import Epilogue
from cuvil.codegen.contraction.kernel import emit_contraction
from cuvil.codegen.contraction.schedule import scratch_bytes
from cuvil.codegen.contraction.tasks import Spec, TaskCount
from cuvil.codegen.contraction.tuning import alternatives
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.slots import SlotTable
from cuvil.codegen.template_epilogue import RegionEpilogue
from cuvil.codegen.template_specs import (
    attention_spec,
    contraction_spec,
    depthwise_spec,
    few_rows_spec,
    lookup_spec,
    winograd_spec,
)
from cuvil.ir import nest

Tasks = Callable[[ir.IRBuilder, ir.Value], ir.Value]


@dataclass(frozen=True)
class TemplateCode:
    """What a template needs at its launch."""

    tasks: Tasks
    scratch_bytes: int


Emit = Callable[
    [ir.Module, nest.TemplateOp, TargetFacts, SlotTable, str, RegionEpilogue], TemplateCode
]
"""Adds a kernel by name for a template; its epilogue is called with vectors of columns."""

Choices = Callable[[nest.TemplateOp, TargetFacts, SlotTable], Sequence[tuple[int, ...]]]
"""Ways to cut a template, as numbers that its generator reads back; that of costs first."""


def emit_template(
    module: ir.Module,
    kernel: nest.KernelOp,
    facts: TargetFacts,
    slots: SlotTable,
    name: str,
    emit: Callable[[str], Emit],
) -> TemplateCode:
    """Adds the kernel `name`, whose body is one template. emit: the generator for its kind."""
    template = next(op for op in kernel.body.block.ops if isinstance(op, nest.TemplateOp))
    epilogue = RegionEpilogue(template, kernel, facts, slots)
    return emit(template.kind.data)(module, template, facts, slots, name, epilogue)


@dataclass(frozen=True)
class Generator(Generic[Spec]):
    """An `Emit` of the functions of one generator.

    spec: the generator's spec, from a template's attributes. emit: adds the kernel by name.
    """

    spec: Callable[[nest.TemplateOp, SlotTable], Spec]
    emit: Callable[[ir.Module, str, Spec, TargetFacts, Epilogue], ir.Function]
    tasks: TaskCount[Spec]
    scratch_bytes: Callable[[Spec, TargetFacts], int] = lambda spec, facts: 0

    def __call__(
        self,
        module: ir.Module,
        template: nest.TemplateOp,
        facts: TargetFacts,
        slots: SlotTable,
        name: str,
        epilogue: RegionEpilogue,
    ) -> TemplateCode:
        spec = self.spec(template, slots)
        self.emit(module, name, spec, facts, epilogue)
        return TemplateCode(
            lambda b, dims: self.tasks.emit(b, dims, spec, facts), self.scratch_bytes(spec, facts)
        )


def contract_choices(
    template: nest.TemplateOp, facts: TargetFacts, slots: SlotTable
) -> list[tuple[int, ...]]:
    """`Choices` for templates of kind "contract"."""
    found = alternatives(contraction_spec(template, slots), facts)
    return [(c.vectors, c.rows, c.k_blocks, c.pack) for c in found]


def depthwise_choices(
    template: nest.TemplateOp, facts: TargetFacts, slots: SlotTable
) -> list[tuple[int, ...]]:
    """`Choices` for templates of kind "depthwise"."""
    return [(n,) for n in depthwise.alternatives(depthwise_spec(template, slots), facts)]


def attention_choices(
    template: nest.TemplateOp, facts: TargetFacts, slots: SlotTable
) -> list[tuple[int, ...]]:
    """`Choices` for templates of kind "attention"."""
    found = attention.alternatives(attention_spec(template, slots), facts)
    return [(c.vectors, c.tiles, c.rows) for c in found]


emit_contract = Generator(contraction_spec, emit_contraction, task_count, scratch_bytes)
emit_few_rows = Generator(
    few_rows_spec, few_rows.emit_few_rows, few_rows.task_count, few_rows.scratch_bytes
)
emit_depthwise = Generator(depthwise_spec, depthwise.emit_depthwise, depthwise.task_count)
emit_attention = Generator(
    attention_spec, attention.emit_attention, attention.task_count, attention.scratch_bytes
)
emit_winograd = Generator(
    winograd_spec, winograd.emit_winograd, winograd.task_count, winograd.scratch_bytes
)
emit_lookup = Generator(
    lookup_spec,
    lambda module, name, spec, facts, _: lookup.emit_lookup(module, name, spec, facts),
    lookup.task_count,
)
"""Nothing is fused behind a lookup: it has no epilogue."""
