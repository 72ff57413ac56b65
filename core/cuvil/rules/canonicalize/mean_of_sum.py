"""Means written as sums."""

from __future__ import annotations

from cuvil.ir.dims import product
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, name_of, number, one_user


@rule(
    "mul", "div",
    example=[
        case(
            lambda b, x: b.div(
                b.reduce(x, kind="sum", axes=(1,), keepdims=True), b.scalar(6, x)
            ),
            x="[B, 6] f32",
        ),
        case(
            lambda b, x: b.mul(b.reduce(x, kind="sum", axes=(1,)), b.scalar(0.25, x)),
            x="[B, 4] f32",
        ),
    ],
    near_miss=[
        case(
            lambda b, x: b.mul(b.reduce(x, kind="sum", axes=(1,)), b.scalar(0.25, x)),
            x="[B, 5] f32",
        ),
        case(
            lambda b, x: b.div(b.reduce(x, kind="sum", axes=(1,)), b.scalar(6, x)), x="[B, 6] i32"
        ),
    ],
    tolerance=1e-6,
)  # fmt: skip
def mean_of_sum(b: Rewriter, op: Operation) -> Value | None:
    """A sum divided by the number of its terms is a mean."""
    total, divisor = b.producer(op.operands[0], "reduce"), number(op.operands[1])
    if total is None or not isinstance(divisor, float) or attrs_of(total).kind != "sum":
        return None
    a, x = attrs_of(total), total.operands[0]
    count = product(dims_of(x)[i] for i in a.axes)
    if not isinstance(count, int) or one_user(total.results[0]) is not op:
        return None
    kind = dtype_of(x).numpy.type
    if count == 0 or divisor != float(kind(1 / count) if name_of(op) == "mul" else kind(count)):
        return None
    if dims_of(total.results[0]) != dims_of(op.results[0]):
        return None
    result: Value = b.reduce(x, kind="mean", axes=a.axes, keepdims=a.keepdims)
    return result
