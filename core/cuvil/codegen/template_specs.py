"""Attributes of `nest.template` as the specs that generators take; symbolic sizes become slots."""

from __future__ import annotations

from cuvil.codegen import attention, depthwise, few_rows, lookup, winograd
from cuvil.codegen.contraction.arith import Size, Slot
from cuvil.codegen.contraction.spec import BatchDim, ContractionSpec, CutChoice, KDim, RowDim
from cuvil.codegen.slots import SlotTable
from cuvil.ir import nest
from cuvil.ir.names import Value
from cuvil.ir.nest_build import CHOICE
from cuvil.plan.templates.attention import number

_GROUP_OF = {"bf16": "bf16x2", "u8": "u8s8x4"}


def kernel_buffers(template: nest.TemplateOp) -> list[Value]:
    """The buffers of the kernel that a template is the body of, in order."""
    block = template.parent
    assert block is not None
    return list(block.args[:-1])


def _choice(template: nest.TemplateOp) -> list[int]:
    """How the generator is to cut it, as its row of the kernel table says; empty: by cost."""
    found = template.spec.data.get(CHOICE)
    return list(found.data) if found is not None else []  # type: ignore[attr-defined]


def _sizes(template: nest.TemplateOp, slots: SlotTable, key: str) -> list[Size]:
    dims = template.spec.data[key].data  # type: ignore[attr-defined]
    return [d if isinstance(d, int) else Slot(slots.of(d)) for d in dims]


def _operands(template: nest.TemplateOp, count: int = 3) -> list[int]:
    """Where the template's first buffers (A, B and C) lie among the kernel's."""
    order = {value: i for i, value in enumerate(kernel_buffers(template))}
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
