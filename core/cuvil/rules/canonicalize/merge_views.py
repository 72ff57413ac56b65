"""A view of a view of the same kind."""

from __future__ import annotations

from cuvil.ir.dims import known_equal, product
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.axes import permuted
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, name_of


@rule(
    "reshape", "transpose", "slice", "broadcast",
    example=[
        case(lambda b, x: b.reshape(b.reshape(x, dims=(6,)), dims=(3, 2)), x="[2, 3] f32"),
        case(
            lambda b, x: b.transpose(b.transpose(x, perm=(1, 2, 0)), perm=(1, 2, 0)),
            x="[2, 3, B] f32",
        ),
        case(
            lambda b, x: b.slice(
                b.slice(x, starts=(8,), steps=(-2,), dims=(4,)), starts=(1,), steps=(2,), dims=(2,)
            ),
            x="[9] f32",
        ),
        case(lambda b, x: b.broadcast(b.broadcast(x, dims=(2, 3)), dims=(4, 2, 3)), x="[3] f32"),
    ],
    near_miss=case(
        lambda b, x: b.reshape(b.transpose(x, perm=(1, 0)), dims=(6,)), x="[2, 3] f32"
    ),
)  # fmt: skip
def merge_views(b: Rewriter, op: Operation) -> Value | None:
    """Two reshapes, transposes, slices or broadcasts in a row are one."""
    name = name_of(op)
    inner = b.producer(op.operands[0], name)
    if inner is None:
        return None
    x, first, second = inner.operands[0], attrs_of(inner), attrs_of(op)
    result: Value | None = None
    if name == "transpose":
        result = b.transpose(x, perm=permuted(first.perm, second.perm))
    elif name == "slice":
        pairs = zip(first.starts, first.steps, second.starts, strict=True)
        result = b.slice(
            x,
            starts=[start + step * more for start, step, more in pairs],
            steps=[s * t for s, t in zip(first.steps, second.steps, strict=True)],
            dims=second.dims,
        )
    elif name == "broadcast":
        result = b.broadcast(x, dims=second.dims)
    elif _same_size(x, second.dims):
        result = b.reshape(x, dims=second.dims)
    return result


def _same_size(x: Value, dims: tuple[object, ...]) -> bool:
    """A reshape may assert at run time what is not known here; two such are kept apart."""
    return known_equal(product(dims_of(x)), product(dims))  # type: ignore[arg-type]
