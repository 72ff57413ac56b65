"""Casts there and back."""

from __future__ import annotations

from cuvil.ir.dtypes import DTYPES, DType
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dtype_of

_DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_EXPONENT = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}
# Narrow floats: what a wider type needs to hold their values, denormals included.
_DIGITS |= {row.name: 4 for row in DTYPES if row.is_narrow and row.is_float}
_EXPONENT |= {row.name: 5 for row in DTYPES if row.is_narrow and row.is_float} | {"f8e8m0": 8}


@rule(
    "cast",
    example=[
        case(lambda b, x: b.cast(b.cast(x, to="i64"), to="f32"), x="[B] i32"),
        case(lambda b, x: b.cast(b.cast(x, to="f32"), to="bool"), x="[B] bool"),
        case(lambda b, x: b.cast(b.cast(x, to="f32"), to="f16"), x="[B] f16"),
    ],
    near_miss=[
        case(lambda b, x: b.cast(b.cast(x, to="f16"), to="f32"), x="[B] f32"),
        case(lambda b, x: b.cast(b.cast(x, to="i32"), to="i64"), x="[B] i64"),
        case(lambda b, x: b.cast(b.cast(x, to="f32"), to="i32"), x="[B] i32"),
    ],
)
def cast_of_cast(b: Rewriter, op: Operation) -> Value | None:
    """A first cast that loses nothing is left out."""
    first = b.producer(op.operands[0], "cast")
    if first is None:
        return None
    source, middle, last = (dtype_of(v) for v in (first.operands[0], *op.operands, *op.results))
    if not _holds(middle, source) or (last.kind == "bool" and source.kind != "bool"):
        return None
    if source == last and source.is_narrow and source.is_float:
        return None  # the second cast saturates infinities
    result: Value = first.operands[0] if source == last else b.cast(first.operands[0], to=last.name)
    return result


def _holds(middle: DType, source: DType) -> bool:
    """Whether `middle` has every value of `source`."""
    if source == middle or source.kind == "bool":
        return True
    if middle.kind == "bool":
        return False
    if middle.is_narrow and middle.is_float:
        return False
    if source.is_float:
        return middle.is_float and (
            _DIGITS[middle.name] >= _DIGITS[source.name]
            and _EXPONENT[middle.name] >= _EXPONENT[source.name]
        )
    if middle.is_float:
        digits = _DIGITS[middle.name]
        return digits >= source.value_bits and (middle.name != "f16" or source.is_narrow)
    if source.kind == middle.kind:
        return middle.value_bits >= source.value_bits
    return source.kind == "uint" and middle.value_bits > source.value_bits
