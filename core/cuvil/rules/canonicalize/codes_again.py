"""Codes that become numbers, are moved, and become the same codes."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, name_of, number, owner

_MOVERS = frozenset({"reshape", "transpose", "slice", "broadcast"})
_LEAST, _MOST = 1e-30, 1e30  # of scales, for which (code * scale) / scale is nearest to the code
_CODES = ("u8", "i8", "u16", "i16")


def _numbers(b: Rewriter, codes: Value, scale: float = 0.25) -> Value:
    result: Value = b.dequantize_linear(codes, b.scalar(scale, "f32"), b.scalar(7, "u8"))
    return result


def _codes(b: Rewriter, x: Value) -> Value:
    result: Value = b.quantize_linear(x, b.scalar(0.25, "f32"), b.scalar(7, "u8"), to="u8")
    return result


@rule(
    "quantize_linear",
    example=[
        case(lambda b, x: b.add(_codes(b, _numbers(b, x)), x), x="[B, 40] u8"),
        case(
            lambda b, x: _codes(b, b.transpose(
                b.reshape(_numbers(b, x), dims=(3, 5, 8)), perm=(1, 0, 2)
            )),
            x="[3, 40] u8",
        ),
        case(
            lambda b, x: _codes(b, b.emit(
                "pool", [_numbers(b, x)], kind="max", kernel=(3, 3), strides=(2, 2),
                dilations=(1, 1), pads=(1, 1, 1, 1), out=(4, 4),
            )),
            x="[1, 3, 8, 8] u8",
        ),
    ],
    near_miss=[
        case(lambda b, x: _codes(b, _numbers(b, x, 0.5)), x="[B, 40] u8"),
        case(lambda b, x: _codes(b, b.relu(_numbers(b, x))), x="[B, 40] u8"),
    ],
)  # fmt: skip
def codes_again(b: Rewriter, op: Operation) -> Value | None:
    """They are moved as they are."""
    x, scale = op.operands[:2]
    step = number(scale)
    if step is None or not _LEAST < step < _MOST or attrs_of(op).to not in _CODES:
        return None
    return _moved(b, x, op)


def _moved(b: Rewriter, value: Value, op: Operation) -> Value | None:
    """The codes in the place of numbers; None where they are not of the same scale and zero."""
    made = owner(value)
    if made is None:
        return None
    if name_of(made) == "dequantize_linear":
        codes = made.operands[0]
        fits = dtype_of(codes).name == attrs_of(op).to and dims_of(codes) == dims_of(value)
        return codes if fits and _parts(made) == _parts(op) else None
    if name_of(made) not in _MOVERS and not _is_greatest(made):
        return None
    source = _moved(b, made.operands[0], op)
    return None if source is None else b.like(made, [source, *made.operands[1:]])


def _parts(op: Operation) -> tuple[object, object]:
    """Scale and zero point, where they are numbers."""
    scale, *zero = op.operands[1:]
    offset = number(zero[0]) if zero else 0
    return (number(scale), dtype_of(scale).name), zero[0] if offset is None else offset


def _is_greatest(op: Operation) -> bool:
    return name_of(op) == "pool" and attrs_of(op).kind == "max" and len(op.results) == 1
