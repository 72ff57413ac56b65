"""Contractions and convolutions as one template: rows of A by packed columns of B, then a fused
epilogue. What does not fit is left to the plain loops of the op's own lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cuvil.ir.build import is_constant
from cuvil.ir.dims import Dim, divisible_by, known_equal, product
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.nest_build import template_op
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.kernel import Draft, Kernel, Packed, epilogue_inputs
from cuvil.plan.layout import Layouts, dense
from cuvil.plan.loops import ReadsBack
from cuvil.plan.packing import Packing
from cuvil.plan.pull import Axes, collapse
from cuvil.plan.templates.epilogue import epilogue

FEW_CHANNELS = 8  # of an image that is not worth a pass over memory to be transposed
FEW_ROWS = 4  # fit the ways of any cache
PANEL = 32  # columns per panel: every variant's tile divides it


@dataclass(frozen=True)
class Row:
    """A dim that walks rows of A and of the result; axis: of the result (-1: none)."""

    axis: int
    extent: Dim
    a_stride: Dim


@dataclass(frozen=True)
class Batch:
    """A dim with a B of its own; axis: of the result (-1: it walks columns, `col` per index)."""

    axis: int
    extent: Dim
    a_stride: Dim
    b_stride: Dim
    col: Dim = 0


@dataclass(frozen=True)
class Match:
    """A contraction in the template's terms. a, b: the tensors that are read; n_axes: how many last
    axes of the result are columns."""

    a: Value
    b: Value
    batch: tuple[Batch, ...]
    rows: tuple[Row, ...]
    k: tuple[tuple[Dim, Dim], ...]  # (extent, stride in A)
    n: Dim
    n_axes: int
    packing: Packing

    @property
    def group(self) -> int:
        """Neighbours in the sum that lie and are read together: strides of A and B count these."""
        return self.packing.group


GROUP = {"f32": 1, "f16": 1, "bf16": 2, "u8": 4}  # of the rows' dtype
_SUMS = {("bf16", "bf16"): "f32", ("u8", "i8"): "i32", ("f16", "f16"): "f32"}


PanelOf = Callable[[Dim], int]  # number of columns -> columns of a panel


def _match_contract(panel_of: PanelOf, op: Operation, layouts: Layouts) -> Match | None:
    return _grouped(op, _plain_contract(op, layouts, panel_of))


def _match_conv(panel_of: PanelOf, op: Operation, layouts: Layouts) -> Match | None:
    return _grouped(op, _plain_conv(op, layouts, panel_of))


def _grouped(op: Operation, m: Match | None) -> Match | None:
    """The match in terms of groups of the operands' dtype; None where they do not divide it."""
    if m is None:
        return m
    dtype, other = (tensor_type(v).dtype.name for v in (m.a, m.b))
    group = GROUP.get(dtype, 0)
    if dtype == "f32":
        return _with_floats(m, other)
    if not group:
        return None
    strides = [
        *(s for x in m.batch for s in (x.a_stride, x.b_stride)),
        *(r.a_stride for r in m.rows), *(s for _, s in m.k[:-1]), m.k[-1][0],
    ]  # fmt: skip
    together = m.k[-1][1] == 1 and all(divisible_by(s, group) for s in strides)
    if not together or _SUMS.get((dtype, other)) != attrs_of(op).accumulate:
        return None
    return replace(
        m,
        batch=tuple(
            replace(x, a_stride=x.a_stride // group, b_stride=x.b_stride // group) for x in m.batch
        ),
        rows=tuple(replace(r, a_stride=r.a_stride // group) for r in m.rows),
        k=(*((e, s // group) for e, s in m.k[:-1]), (m.k[-1][0] // group, 1)),
        packing=replace(m.packing, dtype=other, group=group),
    )


def _with_floats(m: Match, other: str) -> Match | None:
    """The match for rows of float32: columns are the same, or constants kept as float16."""
    if other == "f16" and is_constant(m.b):
        return replace(m, packing=replace(m.packing, dtype=other))
    return m if other == "f32" else None


def _plain_contract(op: Operation, layouts: Layouts, panel_of: PanelOf) -> Match | None:
    inputs, out = attrs_of(op).spec.split("->")
    specs = inputs.split(",")
    if not out:
        return None
    if out[-1] in specs[0] and out[-1] not in specs[1]:
        return _match_letters(op, layouts, specs, out, (1, 0), panel_of)
    if out[-1] in specs[1] and out[-1] not in specs[0]:
        return _match_letters(op, layouts, specs, out, (0, 1), panel_of)
    return None


def _match_letters(
    op: Operation,
    layouts: Layouts,
    specs: Sequence[str],
    out: str,
    operands: tuple[int, int],
    panel_of: PanelOf,
) -> Match | None:
    """operands: the one whose letters make rows, and the one that owns the last letter."""
    a, b = operands
    of_a, of_b = specs[a], specs[b]
    extent: dict[str, Dim] = {}
    for spec, value in zip(specs, op.operands, strict=True):
        extent.update(zip(spec, tensor_type(value).dims, strict=True))
    a_stride = dict(zip(of_a, layouts.strides(op.operands[a]), strict=True))
    n_run = 0
    while n_run < len(out) and out[-1 - n_run] in of_b and out[-1 - n_run] not in of_a:
        n_run += 1
    columns = out[len(out) - n_run :]
    k = [c for c in of_a if c in of_b and c not in out]
    if any(c not in out and c not in k for c in of_a + of_b):
        return None
    shared = [c for c in out[: len(out) - n_run] if c in of_b]
    perm = tuple(of_b.index(c) for c in (*shared, *k, *columns))
    panel = panel_of(product(extent[c] for c in columns))
    packing = Packing(tuple(extent[c] for c in of_b), perm, len(shared), len(k), panel, "f32")
    b_stride = dense(packing.batch_dims)
    batch = tuple(
        Batch(out.index(c), extent[c], a_stride.get(c, 0), s * packing.matrix_size)
        for c, s in zip(shared, b_stride, strict=True)
    )
    rows = tuple(
        Row(i, extent[c], a_stride[c]) for i, c in enumerate(out) if c in of_a and c not in of_b
    )
    pairs = tuple((extent[c], a_stride[c]) for c in k) or ((1, 1),)
    return Match(
        op.operands[a], op.operands[b], batch, rows, pairs, packing.n_extent, n_run, packing
    )


def _plain_conv(op: Operation, layouts: Layouts, panel_of: PanelOf) -> Match | None:
    """Channels last, no padding (the layout rules bring convolutions to this form)."""
    attrs = attrs_of(op)
    x, w = tensor_type(op.operands[0]), tensor_type(op.operands[1])
    if attrs.layout != "channels_last" or any(attrs.pads) or len(op.operands) != 2:
        return None
    groups, out = attrs.groups, tensor_type(op.results[0])
    if groups > 1 and w.dims[1] == 1:
        return None
    channels, per_group = x.dims[-1], w.dims[0] // groups
    source, x_stride = _image(op, layouts)
    spatial = range(1, x.rank - 1)
    rows = [Row(0, x.dims[0], x_stride[0])]
    rows += [Row(i, out.dims[i], x_stride[i] * attrs.strides[i - 1]) for i in spatial]
    k = [(w.dims[i + 1], x_stride[i] * attrs.dilations[i - 1]) for i in spatial]
    k.append((w.dims[1], x_stride[-1]))
    kernel_axes = tuple(range(3, 1 + w.rank))
    panel = panel_of(per_group)
    packing = Packing(
        (groups, per_group, *w.dims[1:]), (0, *kernel_axes, 2, 1), 1, len(k), panel, "f32"
    )
    batch: tuple[Batch, ...] = ()
    if groups > 1:
        step = channels // groups * x_stride[-1]
        batch = (Batch(-1, groups, step, packing.matrix_size, per_group),)
    return Match(source, op.operands[1], batch, tuple(rows), tuple(k), per_group, 1, packing)


def _image(op: Operation, layouts: Layouts) -> tuple[Value, Sequence[Dim]]:
    """The image that a convolution reads, and its strides in (batch, spatial..., channel) order."""
    x = op.operands[0]
    view = x.owner
    if isinstance(view, Operation) and reads_through(view, op):
        source = view.operands[0]
        found = layouts.strides(source)
        return source, [found[p] for p in attrs_of(view).perm]
    return x, layouts.strides(x)


def reads_through(op: Operation, consumer: Operation) -> bool:
    """A convolution over an image of few channels reads it in the layout in which it came."""
    if op.name != "cuvil.transpose" or consumer.name != "cuvil.conv":
        return False
    image = tensor_type(op.results[0])
    channels = image.dims[-1]
    few = isinstance(channels, int) and channels <= FEW_CHANNELS
    mine = consumer.operands[0] is op.results[0] and len(list(op.results[0].uses)) == 1
    fits = attrs_of(consumer).layout == "channels_last" and not any(attrs_of(consumer).pads)
    return few and mine and fits and attrs_of(consumer).groups == 1 and image.dtype.name == "f32"


DTYPES = frozenset({*GROUP, "i8", "f16"})


def matchers(
    panel_of: PanelOf,
) -> dict[str, Callable[[Operation, Layouts], Match | None]]:
    """`MATCHERS` with panels of other widths."""
    return {
        "cuvil.contract": partial(_match_contract, panel_of),
        "cuvil.conv": partial(_match_conv, panel_of),
    }


MATCHERS = matchers(lambda columns: PANEL)


def build(draft: Draft, name: str, m: Match) -> Kernel:
    """The anchor as a template with what is fused behind it; raises ReadsBack where the fused
    consumers look at columns in a way that vectors cannot."""
    spec, block = walked(draft, m)
    spec |= {"k": _flat(m.k), "panel": (m.packing.panel,)}
    return packed_kernel(draft, name, "contract", spec, block, (m.a, m.b), m.packing)


def walked(draft: Draft, m: Match) -> tuple[dict[str, Sequence[Dim]], Block]:
    """Batch, rows and columns of a template's spec, and its epilogue; raises as `build`."""
    anchor = draft.group.anchor
    assert anchor is not None
    result = draft.group.root.results[0]
    shape = tensor_type(result).dims
    behind = epilogue_inputs(draft.group, draft.pool)
    groups, rows = _merge_axes(m, collapse(shape, [*behind, result], draft.layouts), shape)
    axes = Axes(groups, len(shape))
    positions = {group[0]: i for i, group in enumerate(groups)}
    steps = axes.strides_of(tensor_type(result), draft.layouts.strides(result))
    c_stride = {axis: steps[i] for axis, i in positions.items()}
    walks = [positions.get(axis) for axis in (*(x.axis for x in m.batch), *(r.axis for r in rows))]
    block = epilogue(draft, walks, len(groups), axes)
    spec: dict[str, Sequence[Dim]] = {
        "batch": _flat(
            (x.extent, x.a_stride, x.b_stride, c_stride.get(x.axis, x.col), x.col) for x in m.batch
        ),
        "rows": _flat((r.extent, r.a_stride, c_stride.get(r.axis, 0)) for r in rows),
        "n": (m.n,),
    }
    return spec, block


def reads_in_place(m: Match, value: Value) -> bool:
    """A is read by strides, B is packed from a dense tensor."""
    return value is not m.b


def reads_rows_together(m: Match, value: Value) -> bool:
    """Rows of A whose numbers are summed along the row: a tile's are read side by side."""
    rows = product(row.extent for row in m.rows)
    few = isinstance(rows, int) and rows <= FEW_ROWS
    return value is m.a and not few and all(extent == 1 for extent, _ in m.k[:-1])


def writes_in_place(m: Match) -> bool:
    """Rows are written anywhere, the columns of a row must be together."""
    return m.n_axes == 1


def packed_kernel(
    draft: Draft,
    name: str,
    kind: str,
    spec: Mapping[str, Sequence[Dim]],
    block: Block,
    operands: tuple[Value, Value],
    packing: Packed,
) -> Kernel:
    """The kernel of a template over an operand that is read in place and one that is packed, then
    what the epilogue in `block` reads."""
    a, b = operands
    behind = epilogue_inputs(draft.group, draft.pool)
    packed, panels = packed_read(draft, b, b is a or b in behind)
    extra = [v for value, v in draft.reads.items() if value in behind]
    result = draft.writes[draft.group.root.results[0]]
    draft.block.add_op(template_op(kind, spec, [draft.reads[a], panels, result, *extra], block))
    return draft.finish(name, 0, {packed: packing})


def packed_read(draft: Draft, value: Value, shared: bool) -> tuple[int, Value]:
    """Position and buffer of an operand that is packed. shared: it is also read as it is."""
    return draft.twin(value) if shared else (list(draft.reads).index(value), draft.reads[value])


def _flat(rows: Iterable[Sequence[Dim]]) -> list[Dim]:
    return [x for row in rows for x in row]


def _merge_axes(
    m: Match, walk: Sequence[Sequence[int]], shape: Sequence[Dim]
) -> tuple[list[list[int]], list[Row]]:
    """Groups of the result's axes, and the rows that are left: neighbours become one row dim where
    A allows it, and the result and every operand of the epilogue (walk) do."""
    together = {axis: i for i, group in enumerate(walk) for axis in group}
    first_column = len(shape) - m.n_axes
    if len({together[a] for a in range(first_column, len(shape)) if shape[a] != 1}) > 1:
        raise ReadsBack
    axes: list[list[int]] = []
    rows: list[Row] = []
    by_axis = {r.axis: r for r in m.rows}
    for axis in range(first_column):
        row, last = by_axis.get(axis), rows[-1] if rows else None
        if row and last and axes[-1][0] == last.axis and axes[-1][-1] == axis - 1:
            alike = together[axis] == together[axis - 1] or 1 in (row.extent, last.extent)
            if row.extent == 1 or last.extent == 1:
                stride = last.a_stride if row.extent == 1 else row.a_stride
                fits = True
            else:
                stride, fits = row.a_stride, known_equal(last.a_stride, row.extent * row.a_stride)
            if alike and fits:
                rows[-1] = Row(last.axis, last.extent * row.extent, stride)
                axes[-1].append(axis)
                continue
        axes.append([axis])
        if row:
            rows.append(row)
    axes.append(list(range(first_column, len(shape))))
    return axes, rows or [Row(-1, 1, 0)]
