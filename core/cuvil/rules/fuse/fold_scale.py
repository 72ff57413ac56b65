"""Factors per output channel behind convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.ops.conv import channel_axis
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import (
    attrs_of,
    dims_of,
    dtype_of,
    is_constant,
    name_of,
    one_user,
    rank_of,
)

_ONE = {"strides": (1,), "dilations": (1,), "pads": (0, 0)}


@rule(
    "mul",
    example=[
        case(
            lambda b, x: b.mul(b.conv(x, b.const(sample(4, 3, 2)), **_ONE), b.const(sample(4, 1))),
            x="[B, 3, 5] f32",
        ),
        case(
            lambda b, x: b.mul(
                b.contract(x, b.const(sample(5, 20)), spec="mk,kn->mn"), b.const(sample(20))
            ),
            x="[B, 5] f32",
        ),
    ],
    near_miss=[
        case(
            lambda b, x: b.mul(b.conv(x, b.const(sample(4, 3, 2)), **_ONE), b.const(sample(4))),
            x="[B, 3, 5] f32",
        ),
        case(
            lambda b, x: (
                (y := b.conv(x, b.const(sample(4, 3, 2)), **_ONE)),
                b.mul(y, b.const(sample(4, 1))),
            ),
            x="[B, 3, 5] f32",
        ),
    ],
    tolerance=1e-5,
)  # fmt: skip
def fold_scale(b: Rewriter, op: Operation) -> Value | None:
    """A constant factor per output channel goes into the constant weights, where the convolution
    or product is used by nothing else."""
    value, scale = op.operands
    inner = b.producer(value, "conv", "conv_transpose", "contract")
    if inner is None or one_user(value) is not op or not is_constant(scale):
        return None
    if len(inner.operands) > 2 or not dtype_of(value).is_float:
        return None
    if dims_of(value) != dims_of(op.results[0]):
        return None
    full = [1] * (rank_of(value) - rank_of(scale)) + list(dims_of(scale))
    b.keep_location(inner)
    if name_of(inner) == "contract":
        return _contract(b, inner, scale, full)
    return _conv(b, inner, scale, full)


def _conv(b: Rewriter, inner: Operation, scale: Value, full: Sequence[Dim]) -> Value | None:
    a, (x, w) = attrs_of(inner), inner.operands
    channel = channel_axis(a.layout, len(full))
    if not is_constant(w) or any(d != 1 for i, d in enumerate(full) if i != channel):
        return None
    axis = 0
    if name_of(inner) == "conv_transpose":
        if a.groups > 1 and full[channel] != 1:
            return None
        axis = 1
    dims = [full[channel] if i == axis else 1 for i in range(rank_of(w))]
    result: Value = b.like(inner, [x, b.mul(w, b.reshape(scale, dims=dims))])
    return result


def _contract(b: Rewriter, inner: Operation, scale: Value, full: Sequence[Dim]) -> Value | None:
    spec = parse(attrs_of(inner).spec)
    scaled = [c for c, d in zip(spec.out, full, strict=True) if d != 1]
    for i, letters in enumerate((spec.a, spec.b)):
        w = inner.operands[i]
        if not is_constant(w) or any(c not in letters for c in scaled):
            continue
        own = [c for c in letters if c in spec.out]
        order = [c for c in spec.out if c in own]
        size = dict(zip(spec.out, full, strict=True))
        factor = b.reshape(scale, dims=[size[c] for c in order])
        factor = b.transpose(factor, perm=[order.index(c) for c in own])
        factor = b.reshape(factor, dims=[size[c] if c in own else 1 for c in letters])
        operands = list(inner.operands)
        operands[i] = b.mul(w, factor)
        result: Value = b.contract(*operands, spec=attrs_of(inner).spec)
        return result
    return None
