"""`nest.template` to the contraction generator: sizes become slots, epilogues run on vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from llvmlite import ir

from cuvil.codegen import attention, depthwise, few_rows, lookup, winograd
from cuvil.codegen.contraction.arith import Size, Slot
from cuvil.codegen.contraction.cut import task_count
from cuvil.codegen.contraction.epilogue import Epilogue, EpilogueScope
from cuvil.codegen.contraction.kernel import emit_contraction
from cuvil.codegen.contraction.schedule import scratch_bytes
from cuvil.codegen.contraction.spec import BatchDim, ContractionSpec, CutChoice, KDim, RowDim
from cuvil.codegen.contraction.tasks import Spec, TaskCount
from cuvil.codegen.contraction.tuning import alternatives
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import I8, i64, splat, vector
from cuvil.codegen.nest_llvm import INDEX_OPS, element_constant, plain_params
from cuvil.codegen.scalars import emit as emit_scalar
from cuvil.codegen.slots import SlotTable
from cuvil.ir import nest
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import CHOICE
from cuvil.ir.types import BufferType, ElementType
from cuvil.plan.templates.attention import number

Tasks = Callable[[ir.IRBuilder, ir.Value], ir.Value]


@dataclass(frozen=True)
class TemplateCode:
    """What a template needs at its launch."""

    tasks: Tasks
    scratch_bytes: int


Emit = Callable[
    [ir.Module, nest.TemplateOp, TargetFacts, SlotTable, str, "RegionEpilogue"], TemplateCode
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


def _choice(template: nest.TemplateOp) -> list[int]:
    """How the generator is to cut it, as its row of the kernel table says; empty: by cost."""
    found = template.spec.data.get(CHOICE)
    return list(found.data) if found is not None else []  # type: ignore[attr-defined]


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


def _sizes(template: nest.TemplateOp, slots: SlotTable, key: str) -> list[Size]:
    dims = template.spec.data[key].data  # type: ignore[attr-defined]
    return [d if isinstance(d, int) else Slot(slots.of(d)) for d in dims]


def _operands(template: nest.TemplateOp, count: int = 3) -> list[int]:
    """Where the template's first buffers (A, B and C) lie among the kernel's."""
    order = {value: i for i, value in enumerate(_kernel_buffers(template))}
    return [order[v] for v in template.buffers[:count]]


def few_rows_spec(template: nest.TemplateOp, slots: SlotTable) -> few_rows.FewRowsSpec:
    """The spec of a product of few rows from the template's attributes."""
    product = contraction_spec(template, slots)
    return few_rows.FewRowsSpec(product, *_sizes(template, slots, "steps"))


def lookup_spec(template: nest.TemplateOp, slots: SlotTable) -> lookup.LookupSpec:
    """The spec of a lookup from the template's attributes."""
    return lookup.LookupSpec(_sizes(template, slots, "count")[0], *_operands(template))


def depthwise_spec(template: nest.TemplateOp, slots: SlotTable) -> depthwise.DepthwiseSpec:
    """The depthwise generator's spec from the template's attributes."""

    def sizes(key: str) -> list[Size]:
        return _sizes(template, slots, key)

    a, b, c = _operands(template)
    return depthwise.DepthwiseSpec(
        batch=(depthwise.DepthwiseBatch(*sizes("batch")),),
        out=tuple(sizes("out")),  # type: ignore[arg-type]
        channels=sizes("channels")[0],
        kernel=tuple(sizes("kernel")),  # type: ignore[arg-type]
        a_row=sizes("a")[0],
        a_pixel=sizes("a")[1],
        c_row=sizes("c")[0],
        c_pixel=sizes("c")[1],
        stride=tuple(sizes("stride")),  # type: ignore[arg-type]
        dilation=tuple(sizes("dilation")),  # type: ignore[arg-type]
        a=a,
        b=b,
        c=c,
        columns=(*_choice(template), 0)[0],
    )


def contraction_spec(template: nest.TemplateOp, slots: SlotTable) -> ContractionSpec:
    """The contraction generator's spec from the template's attributes."""

    def rows(key: str, width: int) -> list[list[Size]]:
        flat = _sizes(template, slots, key)
        return [flat[i : i + width] for i in range(0, len(flat), width)]

    a, b, c = _operands(template)
    return ContractionSpec(
        batch=tuple(BatchDim(*row) for row in rows("batch", 5)),
        rows=tuple(RowDim(*row) for row in rows("rows", 3)),
        k=tuple(KDim(*row) for row in rows("k", 2)),
        n=_sizes(template, slots, "n")[0],
        panel=_panel(template),
        dtype=_GROUP_OF.get(template.buffers[0].type.data, "f32"),  # type: ignore[attr-defined]
        a=a,
        b=b,
        c=c,
        choice=CutChoice(*_choice(template)),
        halves=template.buffers[1].type.data == "f16",  # type: ignore[attr-defined]
        half_rows=template.buffers[0].type.data == "f16",  # type: ignore[attr-defined]
    )


def _panel(template: nest.TemplateOp) -> int:
    """0 where B is not in panels."""
    found = template.spec.data.get("panel")
    return int(found.data[0]) if found is not None else 0  # type: ignore[attr-defined]


_GROUP_OF = {"bf16": "bf16x2", "u8": "u8s8x4"}


def winograd_spec(template: nest.TemplateOp, slots: SlotTable) -> winograd.WinogradSpec:
    """The Winograd generator's spec from the template's attributes."""
    parts = {key: _sizes(template, slots, key) for key in template.spec.data}
    image, result = winograd.Image(*parts["image"]), winograd.Result(*parts["result"])
    numbers: list[int] = [*parts["channels"], *parts["panel"]]  # type: ignore[list-item]
    return winograd.WinogradSpec(
        tuple(parts["tile"]), tuple(parts["taps"]), image, result,  # type: ignore[arg-type]
        *numbers, *_operands(template),
    )  # fmt: skip


def attention_spec(template: nest.TemplateOp, slots: SlotTable) -> attention.AttentionSpec:
    """The attention generator's spec from the template's attributes."""
    parts = {key: _sizes(template, slots, key) for key in template.spec.data}
    flat, (width, q_step, k_step) = parts["batch"], parts["width"]
    masked, causal = parts["masked"]
    q, k, v, c, *mask = _operands(template, 4 + bool(masked))
    scale, fill = map(number, parts["numbers"])  # type: ignore[arg-type]
    return attention.AttentionSpec(
        tuple(attention.BatchDim(*flat[i : i + 6]) for i in range(0, len(flat), 6)),
        attention.Rows(*parts["queries"]),  # type: ignore[arg-type]
        attention.Keys(*parts["keys"]),
        width,  # type: ignore[arg-type]
        parts["columns"][0],  # type: ignore[arg-type]
        q_step,
        k_step,
        scale,
        ("", "add", "select")[masked],  # type: ignore[index]
        fill,
        bool(causal),
        q, k, v, c, mask[0] if mask else c,
        attention.AttentionChoice(*_choice(template)),
    )  # fmt: skip


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


def _kernel_buffers(template: nest.TemplateOp) -> list[Value]:
    block = template.parent
    assert block is not None
    return list(block.args[:-1])


@dataclass(frozen=True)
class RegionEpilogue:
    """An epilogue region as the generator's callable: every element op on a vector of columns."""

    template: nest.TemplateOp
    kernel: nest.KernelOp
    facts: TargetFacts
    slots: SlotTable

    def __call__(self, scope: EpilogueScope, acc: ir.Value) -> ir.Value:
        block = self.template.epilogue.block
        values: dict[Value, ir.Value] = dict(
            zip(block.args, [acc, *scope.batch, *scope.rows, scope.col], strict=True)
        )
        emitter = _Vector(self, scope, values, block.args[-1])
        for op in block.ops:
            if isinstance(op, nest.NestYieldOp):
                return values[op.operands[0]]
            emitter.emit(op)
        raise AssertionError("an epilogue ends with nest.yield")


@dataclass
class _Vector:
    epilogue: RegionEpilogue
    scope: EpilogueScope
    values: dict[Value, ir.Value]
    column: Value

    def emit(self, op: Operation) -> None:
        b, values = self.scope.builder, self.values
        args = [values.get(v) for v in op.operands]
        result = op.results[0]
        if isinstance(op, nest.DimOp):
            dim = op.expr.data[0]
            slots = self.epilogue.slots
            values[result] = self.scope.size(dim if isinstance(dim, int) else Slot(slots.of(dim)))
        elif isinstance(op, nest.ConstantOp):
            values[result] = self._constant(op)
        elif isinstance(op, nest.IndexOp):
            values[result] = INDEX_OPS[op.fn.data](b, args[0], args[1])
        elif isinstance(op, nest.LoadOp):
            values[result] = self._load(op)
        elif isinstance(op, nest.ScalarOp):
            kind = op.operands[1 if op.fn.data == "select" else 0].type
            assert isinstance(kind, ElementType)
            values[result] = emit_scalar(
                op.fn.data, b, args, kind.data, attrs=plain_params(op), facts=self.epilogue.facts
            )
        else:
            raise ValueError(f"{op.name} cannot stand in an epilogue")

    def _constant(self, op: nest.ConstantOp) -> ir.Value:
        number = op.properties["value"].value.data  # type: ignore[attr-defined]
        kind = op.results[0].type
        if not isinstance(kind, ElementType):
            return i64(number)
        b = self.scope.builder
        value = element_constant(b, number, kind.data, self.epilogue.facts)
        return splat(b, value, self.scope.lanes)

    def _load(self, op: nest.LoadOp) -> ir.Value:
        kind = op.buffer.type
        assert isinstance(kind, BufferType)
        buffer = _kernel_buffers(self.epilogue.template).index(op.buffer)
        offset = self.values[op.offset]
        step = column_step(op.offset, self.column)
        load = {0: self.scope.load_broadcast, 1: self.scope.load}.get(-1 if step is None else step)
        if load is None:
            raise ValueError("an epilogue reads its operands along columns or once per row")
        value = load(buffer, kind.data, offset)
        if kind.data == "bool":
            zero = ir.Constant(vector(I8, self.scope.lanes), None)
            value = self.scope.builder.icmp_unsigned("!=", value, zero)
        return value


def column_step(offset: Value, column: Value) -> int | None:
    """By how much an index grows per column; None where that is not a literal."""
    if offset is column:
        return 1
    owner = offset.owner
    if not isinstance(owner, nest.IndexOp):
        return 0
    left, right = (column_step(v, column) for v in owner.operands)
    fn = owner.fn.data
    if left is None or right is None:
        return None
    if fn in ("add", "sub"):
        return left + right if fn == "add" else left - right
    if (left, right) == (0, 0):
        return 0
    if fn == "mul":
        return _scaled(owner.operands[1], left) if right == 0 else _scaled(owner.operands[0], right)
    return None


def _scaled(factor: Value, step: int) -> int | None:
    owner = factor.owner
    if isinstance(owner, nest.ConstantOp):
        return step * int(owner.properties["value"].value.data)  # type: ignore[attr-defined]
    return None
