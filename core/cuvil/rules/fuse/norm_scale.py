"""Scale and bias behind norms."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, name_of, one_user, rank_of


@rule(
    "mul", "add",
    example=[
        case(
            lambda b, x: b.add(
                b.mul(b.const(sample(19)), b.layer_norm(x, axis=1)), b.const(sample(19, seed=1))
            ),
            x="[B, 19] f32",
        ),
        case(lambda b, x: b.add(b.layer_norm(x, axis=1), b.const(sample(19))), x="[B, 19] f32"),
        case(lambda b, x: b.mul(b.rms_norm(x, axis=1), b.const(sample(1, 19))), x="[B, 19] f32"),
    ],
    near_miss=[
        case(
            lambda b, x, y: b.add(b.layer_norm(x, axis=1), y), x="[B, 19] f32", y="[B, 19] f32"
        ),
        case(lambda b, x: b.add(b.rms_norm(x, axis=1), b.const(sample(19))), x="[B, 19] f32"),
    ],
    tolerance=1e-6,
)  # fmt: skip
def norm_scale(b: Rewriter, op: Operation) -> Value | None:
    """A factor or summand for every element of a row is an operand of the norm."""
    for value, other in (op.operands, op.operands[::-1]):
        norm = b.producer(value, "layer_norm", "rms_norm")
        if norm is None or one_user(value) is not op or dims_of(value) != dims_of(op.results[0]):
            continue
        operand = _row_operand(b, other, dims_of(value)[attrs_of(norm).axis :])
        if operand is None:
            continue
        operands = [*norm.operands]
        if name_of(op) == "mul" and len(operands) == 1:
            return _emit(b, norm, [*operands, operand])
        if name_of(op) == "add" and name_of(norm) == "layer_norm" and len(operands) < 3:
            if len(operands) == 1:
                operands.append(_ones(b, norm))
            return _emit(b, norm, [*operands, operand])
    return None


def _emit(b: Rewriter, norm: Operation, operands: list[Value]) -> Value:
    result: Value = b.like(norm, operands)
    return result


def _ones(b: Rewriter, norm: Operation) -> Value:
    x = norm.operands[0]
    result: Value = b.reshape(b.scalar(1, x), dims=[1] * (rank_of(x) - attrs_of(norm).axis))
    return result


def _row_operand(b: Rewriter, value: Value, row: tuple[Dim, ...]) -> Value | None:
    """The value with the dims of a row, or 1 in their place; None where it differs by row."""
    dims: list[Dim] = list(dims_of(value))
    while len(dims) > len(row) and dims[0] == 1:
        dims.pop(0)
    dims = [*[1] * (len(row) - len(dims)), *dims]
    fits = len(dims) == len(row) and all(d in (1, r) for d, r in zip(dims, row, strict=True))
    if not fits or all(d == 1 for d in dims) or not dtype_of(value).is_float:
        return None
    result: Value = b.reshape(value, dims=dims)
    return result
