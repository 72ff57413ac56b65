"""Tensors that products read rounded, where sums read them too."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dtype_of, is_constant, name_of, owner, users

_NARROW = ("bf16", "f16")


def _both(b: Rewriter, x: Value, y: Value, to: str = "bf16") -> tuple[Value, Value]:
    """exp(x) rounded, and exp(x) + y."""
    wide = b.exp(x)
    return b.cast(wide, to=to), b.add(wide, y)


@rule(
    "add",
    example=[
        case(_both, x="[B, 5] f32", y="[B, 5] f32"),
        case(lambda b, x, y: _both(b, x, y, "f16"), x="[B, 5] f32", y="[5] f32"),
    ],
    near_miss=[
        case(lambda b, x, y: _both(b, x, y, "f64"), x="[B, 5] f32", y="[B, 5] f32"),
        case(lambda b, x, y: (b.cast(x, to="bf16"), b.add(x, y)), x="[5] f32", y="[5] f32"),
        case(lambda b, x, y: (b.add((z := b.exp(x)), y), z), x="[5] f32", y="[5] f32"),
    ],
    on=False,
    tolerance=1e-2,
)
def round_for_all(b: Rewriter, op: Operation) -> Value | None:
    """A sum, such as one behind a residual, takes what a product takes: it is stored once, in 16
    bits, and nothing is rounded twice."""
    operands = [_rounded(b, op, value) for value in op.operands]
    if all(new is old for new, old in zip(operands, op.operands, strict=True)):
        return None
    result: Value = b.like(op, operands)
    return result


def _rounded(b: Rewriter, op: Operation, value: Value) -> Value:
    made = owner(value)
    if made is None or is_constant(value) or dtype_of(value).name != "f32":
        return value
    others = [u for u in users(value) if u is not op]
    kinds = [attrs_of(u).to for u in others if u.parent is op.parent and name_of(u) == "cast"]
    narrow = next((kind for kind in kinds if kind in _NARROW), None)
    if narrow is None:
        return value
    result: Value = b.cast(b.cast(value, to=narrow), to="f32")
    return result
