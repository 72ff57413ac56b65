"""Small bugs, each a function of the compiler with one piece of its source replaced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """module.function, where `old` stands once in the source, with `new` in its place.

    function: its name, that of a rule, or Class.method.
    """

    kind: str
    module: str
    function: str
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}"


def _rules(folder: str, *rows: tuple[str, str, str, str]) -> list[Mutant]:
    return [
        Mutant("rule", f"cuvil.rules.{folder}.{module}", function or module, old, new)
        for module, function, old, new in rows
    ]


CANONICALIZE = _rules(
    "canonicalize",
    ("neutral_operand", "_neutral", "value == 1)", "value in (0, 1))"),
    ("clip_order", "", "not low <= high", "low > high + 10"),
    ("merge_views", "", "start + step * more", "start + more"),
    ("merge_views", "", "permuted(first.perm, second.perm)", "permuted(second.perm, first.perm)"),
    ("slice_of_concat", "", "known_ge(end - 1, high", "known_ge(end, high"),
    ("gather_known", "_even_step", "if steps or step == 0", "if step == 0"),
    ("contract_of_transpose", "", "inverse(attrs_of(moved).perm)", "attrs_of(moved).perm[::-1]"),
    ("reduce_forms", "_merges", "first.kind == attrs_of(op).kind and ", ""),
    ("subtract_constant", "", "b.neg(c)", "c"),
    ("constant_right", "", "_FLIPPED.get(name_of(op), name_of(op))", "name_of(op)"),
    ("involution", "", '("neg", "not")', '("neg", "not", "abs")'),
    ("flatten_concat", "", "attrs_of(inner).axis == axis and ", ""),
    ("power", "", "square if value == 2", "square if value == 3"),
)  # fmt: skip

FUSE = _rules(
    "fuse",
    ("softmax", "", "len(axes) != 1", "len(axes) > 2"),
    ("layer_norm", "", "sorted(axes) != list(range(rank - len(axes), rank))", "not axes"),
    ("leaky_relu", "", "not 0 < alpha < 1", "not 0 < alpha"),
    ("fold_scale", "_conv", "dims = [full[channel] if i == axis",
     "dims = [full[channel] if i == 1 - axis"),
    ("norm_scale", "_ones", "b.scalar(1, x)", "b.scalar(0, x)"),
    ("merge_constants", "", "b.add(first, last)", "first"),
    ("pads_into_window", "", "number(source.operands[1]) != 0",
     "number(source.operands[1]) is None"),
    ("hardswish", "", "beta != 0.5", "beta == 0.0"),
    ("shared_heads", "", "letters.q.index(head), keys.counts)",
     "letters.q.index(head), keys.counts[::-1])"),
    ("one_hot_product", "_index", "np.arange(known.size)):", "known.reshape(-1)):"),
    ("attention_mask", "", "turned = \"\".join(permuted(letters.mask, perm))",
     "turned = letters.mask"),
)  # fmt: skip

LAYOUT = _rules(
    "layout",
    ("sink_transpose_reduce", "", "sorted(perm[i] for i in a.axes)", "sorted(a.axes)"),
    ("sink_transpose_slice", "", "moved(getattr(a, name), perm)", "getattr(a, name)"),
    ("sink_transpose_concat", "", "axis=perm[attrs_of(op).axis]", "axis=attrs_of(op).axis"),
    ("sink_transpose_norm", "", "axis = perm[axis]", "axis = last"),
    ("transposed_conv_as_conv", "", "r - p + e", "r - p"),
    ("transposed_conv_as_product", "", "nhpwqo", "nhqwpo"),
    ("split_pads", "", "high=(0, *a.pads[n:], 0)", "high=(0, *a.pads[:n], 0)"),
)  # fmt: skip

PLAN = [
    Mutant("planner", f"cuvil.plan.{module}", function, old, new)
    for module, function, old, new in (
        ("arena", "_place_literal", "if life.overlaps(buffers[i]):",
         "if life.first == buffers[i].first:"),
        ("arena", "_slots", "buffers[i].overlaps(buffers[j])",
         "buffers[i].first == buffers[j].first"),
        ("in_place", "overwritten", "_read_out(value, known)", "bool(known)"),
        ("in_place", "_made_in", "owner.parent is not block", "owner.parent is None"),
        ("border", "_Pad.border", "self._within(0, low, part)", "self._within(0, 1, part)"),
        ("placement", "_Finder.concat", "Inside(result, offset * steps[axis], steps)",
         "Inside(result, offset, steps)"),
        ("loops", "_walk", "return ceil_div(rows, block)", "return rows // block"),
        ("loops", "concat_kernel", "start = b.add(start, run)", "start = run"),
        ("memory", "Memory.close_loop", "if start in buffer.pinned:", "if start is None:"),
        ("program", "_Planner._loop", "counter * nbytes(v)", "0 * nbytes(v)"),
        ("templates.contract", "_plain_conv", "x_stride[i] * attrs.dilations[i - 1]",
         "x_stride[i]"),
        ("templates.contract", "_plain_conv", "x_stride[i] * attrs.strides[i - 1]", "x_stride[i]"),
        ("templates.contract", "_merge_axes",
         "known_equal(last.a_stride, row.extent * row.a_stride)", "bool(last)"),
    )
]  # fmt: skip

LOWERING = [
    Mutant("kernel", f"cuvil.ops.{module}", function, old, new)
    for module, function, old, new in (
        ("reduce", "_is_best", 'return cx.b.scalar("or", found,', 'return (found) or ('),
        ("reduce", "_arg_element", '"max" if a.last else "min"', '"min"'),
        ("reduce", "_start", "neutral(cx.attrs.kind, dtype)", "0"),
        ("cumulative", "_step", "total if cx.attrs.exclusive else after", "after"),
        ("sort", "_before", '"gt" if largest else "lt"', '"ge" if largest else "le"'),
        ("sort", "_before", 'return b.scalar("or", before, b.scalar("and", nan, number))',
         "return before"),
        ("pad", "_reflected", "b.mul(b.sub(rest, 1), 2)", "b.mul(rest, 2)"),
        ("views", "_slice_element", "b.mul(i, step)", "i"),
        ("gather", "bounded_index", 'b.scalar("add", at, size)', "at"),
        ("pool", "window_index", "b.mul(tap[i], a.dilations[i])", "tap[i]"),
    )
]  # fmt: skip

CODEGEN = [
    Mutant("code", f"cuvil.codegen.{module}", function, old, new)
    for module, function, old, new in (
        ("contraction.microkernel", "_Emitter._steps", "left, rest = b.sub(count, done)",
         "left, rest = i64(0)"),
        ("contraction.microkernel", "_Emitter._step", "k if shape.unit else b.mul(k, stride)", "k"),
        ("depthwise", "_Kernel._task", "mine = self.b.icmp_signed(\"<\",",
         "mine = self.b.icmp_signed(\">\","),
        ("depthwise", "_Kernel._kernel_row", "j * spec.dilation[1]", "j"),
        ("attention.softmax", "Softmax._pad", "ceil_div(count, UNROLL)", "div(count, UNROLL)"),
        ("scalars.arithmetic", "_sign", "m.select(m.is_nan(x), x, value) if m.is_float else value",
         "value"),
        ("scalars.arithmetic", "_extremum", '"lt" if name == "min" else "gt"', '"lt"'),
        ("scalars.convert", "_convert", 'm.b.sext if m.dtype.kind == "int" else m.b.zext',
         "m.b.zext"),
        ("scalars.exponential", "exp_minus_1_reduced", "m.mul(r, r)", "r"),
        ("scalars.remainder", "_mod", "m.select(differs,", "m.select(m.compare(\"eq\", b, b),"),
        ("scalars.arithmetic", "_isinf", 'float("inf") if detect_positive else -float("inf")',
         'float("inf")'),
    )
]  # fmt: skip

MUTANTS: tuple[Mutant, ...] = (*CANONICALIZE, *FUSE, *LAYOUT, *PLAN, *LOWERING, *CODEGEN)
