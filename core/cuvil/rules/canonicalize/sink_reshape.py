"""Reshapes between an op and the element-wise ops that could be fused behind it."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.axes import Group, reshape_groups
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import dims_of, has_tag, is_constant, owner, size_of, users

_FUSING = ("pointwise", "anchor", "contraction", "window", "view", "reduction")


@rule(
    "#pointwise",
    example=[
        case(
            lambda b, x, w: b.add(
                b.reshape(b.contract(x, w, spec="mk,kn->mn"), dims=(2, 3, 4)), b.const(sample(4))
            ),
            x="[6, 5] f32", w="[5, 4] f32",
        ),
        case(
            lambda b, x: b.mul(
                b.reshape(b.exp(x), dims=(2, 3)), b.sigmoid(b.reshape(b.exp(x), dims=(2, 3)))
            ),
            x="[6] f32",
        ),
    ],
    near_miss=[
        case(
            lambda b, x: b.add(b.reshape(b.exp(x), dims=(2, 3)), b.const(sample(2, 1))),
            x="[3, 2] f32",
        ),
        case(lambda b, x, y: b.add(b.reshape(b.exp(x), dims=(2, 1)), y), x="[2] f32", y="[2] f32"),
        case(  # the exponentials are stored in any case
            lambda b, x: (
                b.neg(v := b.reshape(b.exp(x), dims=(2, 3))),
                b.reduce(v, kind="max", axes=(1,), keepdims=True),
            ),
            x="[6] f32",
        ),
    ],
)  # fmt: skip
def sink_reshape(b: Rewriter, op: Operation) -> Value | None:
    """An element-wise op stands before the reshape of its operand, so that the op before that can
    take it in. Other operands: constants, and values reshaped in the same way."""
    dims = dims_of(op.results[0])
    view = next((v for v in map(owner, op.operands) if _sinks(b, v, dims)), None)
    if view is None:
        return None
    source = view.operands[0]
    groups = reshape_groups(dims_of(source), dims)
    operands = [_before(b, v, dims_of(source), dims, groups) for v in op.operands]
    if any(v is None for v in operands):
        return None
    result = b.like(op, [v for v in operands if v is not None])
    if dims_of(result) != dims_of(source):
        return None
    return b.reshape(result, dims=dims)


def _sinks(b: Rewriter, view: Operation | None, dims: Sequence[Dim]) -> bool:
    if view is None or b.producer(view.results[0], "reshape") is None:
        return False
    maker = owner(view.operands[0])
    fuses = any(has_tag(maker, tag) for tag in _FUSING) and all(
        has_tag(user, "pointwise") for user in users(view.results[0])
    )
    return fuses and dims_of(view.results[0]) == tuple(dims)


def _before(
    b: Rewriter,
    value: Value,
    source: Sequence[Dim],
    target: Sequence[Dim],
    groups: Sequence[Group] | None,
) -> Value | None:
    """An operand as it is before the reshape from `source` to `target`."""
    view = b.producer(value, "reshape")
    if view is not None and dims_of(view.operands[0]) == tuple(source):
        return view.operands[0] if dims_of(value) == tuple(target) else None
    if size_of(value) == 1:
        return b.reshape(value, dims=()) if dims_of(value) else value
    if not is_constant(value) or groups is None:
        return None
    dims = _grouped_dims(dims_of(value), source, target, groups)
    return None if dims is None else b.reshape(value, dims=dims)


def _grouped_dims(
    have: Sequence[Dim], source: Sequence[Dim], target: Sequence[Dim], groups: Sequence[Group]
) -> list[Dim] | None:
    """The dims of a broadcast operand, every group of axes whole or 1."""
    padded = [1] * (len(target) - len(have)) + list(have)
    dims: list[Dim] = []
    for before, after in groups:
        mine = [padded[i] for i in after]
        if all(d == 1 for d in mine):
            dims += [1] * len(before)
        elif mine == [target[i] for i in after]:
            dims += [source[i] for i in before]
        else:
            return None
    while dims and dims[0] == 1:
        dims.pop(0)
    return dims
