"""Constant factors behind sums of codes, and behind numbers that codes stand for."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import dims_of, dtype_of, is_constant, name_of, one_user, rank_of

_CODES = (np.arange(32 * 40).reshape(32, 40) * 37 % 255 - 127).astype(np.int8)


def _sums(b: Rewriter, x: Value) -> Value:
    total = b.cast(b.contract(x, b.const(_CODES), spec="mk,kn->mn", accumulate="i32"), to="f32")
    result: Value = b.mul(total, b.const(sample(40)))
    return result


def _numbers(b: Rewriter, codes: Value) -> Value:
    result: Value = b.dequantize_linear(codes, b.scalar(0.5, "f32"), b.scalar(7, "u8"))
    return result


@rule(
    "mul",
    example=[
        case(
            lambda b, x: b.mul(b.add(_sums(b, x), b.const(sample(40, seed=1))), b.scalar(3, "f32")),
            x="[B, 32] u8",
        ),
        case(
            lambda b, x, y: b.mul(b.add(_numbers(b, x), _numbers(b, y)), b.scalar(3, "f32")),
            x="[B, 32] u8", y="[B, 32] u8",
        ),
    ],
    near_miss=[
        case(
            lambda b, x, y: b.mul(b.add(_sums(b, x), y), b.scalar(3, "f32")),
            x="[B, 32] u8", y="[40] f32",
        ),
        case(
            lambda b, x: b.mul(
                b.add(b.mul(x, b.scalar(2, "f32")), b.const(sample(4))), b.scalar(3, "f32")
            ),
            x="[B, 4] f32",
        ),
    ],
    tolerance=1e-5,
)  # fmt: skip
def scale_of_sums(b: Rewriter, op: Operation) -> Value | None:
    """They go into the factors that are there: (total * c + d) * s is total * (c * s) + d * s."""
    value, scale = op.operands
    if not is_constant(scale) or is_constant(value):
        return None
    if dims_of(value) != dims_of(op.results[0]):
        return None
    return _times(b, value, scale, op)


def _times(b: Rewriter, value: Value, scale: Value, user: Operation) -> Value | None:
    """value * scale without one more factor; None where that takes one. user: the one of value."""
    if is_constant(value):
        return b.mul(value, scale)
    numbers = b.producer(value, "dequantize_linear")
    if numbers is not None:
        return _numbers_times(b, numbers, scale)
    op = b.producer(value, "add", "mul")
    if op is None or one_user(value) is not user:
        return None
    first, second = op.operands
    if name_of(op) == "mul":
        sums = is_constant(second) and _is_sum(b, first) and dims_of(first) == dims_of(value)
        return b.mul(first, b.mul(second, scale)) if sums else None
    left = _times(b, first, scale, op)
    right = None if left is None else _times(b, second, scale, op)
    return None if left is None or right is None else b.add(left, right)


def _numbers_times(b: Rewriter, op: Operation, scale: Value) -> Value | None:
    """The codes as numbers of another scale."""
    codes, step, *zero = op.operands
    if rank_of(step) or rank_of(scale) or not is_constant(step) or dtype_of(step).name != "f32":
        return None
    result: Value = b.dequantize_linear(codes, b.mul(step, scale), *zero)
    return result


def _is_sum(b: Rewriter, value: Value) -> bool:
    cast = b.producer(value, "cast")
    return cast is not None and dtype_of(cast.operands[0]).name == "i32"
