"""Max pools with large windows."""

from __future__ import annotations

from math import prod

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of

LARGE = 16  # elements of a window from which two passes are less work than one
_FIVE = {"kind": "max", "kernel": (5, 5), "strides": (1, 2), "dilations": (1, 1)}


@rule(
    "pool",
    example=case(
        lambda b, x: b.pool_(
            x, **_FIVE, pads=(2, 2, 2, 2), out=(b.dims_of(x)[1], 4), layout="channels_last"
        ),
        x="[B, H, 7, 3] f32",
    ),
    near_miss=case(
        lambda b, x: b.pool_(
            x, **{**_FIVE, "kind": "avg"}, pads=(0,) * 4, out=(3, 2), layout="channels_last"
        ),
        x="[B, 7, 7, 3] f32",
    ),
)
def max_pool_by_axes(b: Rewriter, op: Operation) -> Value | None:
    """The greatest of a window is the greatest along one axis of the greatest along the others."""
    a, x = attrs_of(op), op.operands[0]
    wide = [i for i, k in enumerate(a.kernel) if k > 1]
    if a.kind != "max" or a.layout != "channels_last" or len(wide) < 2 or prod(a.kernel) < LARGE:
        return None
    value, extents = x, list(dims_of(x)[1:-1])
    for i in range(len(a.kernel)):
        extents[i] = a.out[i]
        value = _along(b, op, value, i, extents)
    return value


def _along(b: Rewriter, op: Operation, x: Value, axis: int, out: list[Dim]) -> Value:
    a, n = attrs_of(op), len(attrs_of(op).kernel)

    def only(values: tuple[int, ...], other: int) -> tuple[int, ...]:
        return tuple(v if i % n == axis else other for i, v in enumerate(values))

    return b.like(
        op,
        [x],
        kernel=only(a.kernel, 1),
        strides=only(a.strides, 1),
        dilations=only(a.dilations, 1),
        pads=only(a.pads, 0),
        out=tuple(out),
    )
