"""Signed codes that only become numbers again."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dtype_of, name_of, number, users

_MOVERS = frozenset({"reshape", "transpose", "slice"})
_UP = 128


def _codes(b: Rewriter, x: Value, to: str = "i8") -> Value:
    result: Value = b.quantize_linear(x, b.scalar(0.5, "f32"), b.scalar(-3, "i8"), to=to)
    return result


def _numbers(b: Rewriter, codes: Value) -> Value:
    result: Value = b.dequantize_linear(codes, b.scalar(0.5, "f32"), b.scalar(-3, "i8"))
    return result


@rule(
    "quantize_linear",
    example=[
        case(lambda b, x: b.relu(_numbers(b, _codes(b, x))), x="[B, 40] f32"),
        case(
            lambda b, x: (
                _numbers(b, b.reshape((y := _codes(b, x)), dims=(5, 8))), _numbers(b, y),
            ),
            x="[40] f32",
        ),
    ],
    near_miss=[
        case(lambda b, x: (_numbers(b, (y := _codes(b, x))), y), x="[B, 40] f32"),
        case(
            lambda b, x, s: b.dequantize_linear(_codes(b, x), s, b.scalar(-3, "i8")),
            x="[B, 40] f32", s="[] f32",
        ),
    ],
    tolerance=1e-6,  # of a NaN the lowest code is another
)  # fmt: skip
def unsigned_codes(b: Rewriter, op: Operation) -> dict[Value, Value] | None:
    """They are counted from the lowest one: products of codes take unsigned rows."""
    x, scale, *zero = op.operands
    offset = number(zero[0]) if zero else 0
    found = _readers(op.results[0])
    if attrs_of(op).to != "i8" or offset is None or found is None:
        return None
    movers, readers = found
    lowest = b.scalar(offset + _UP, "u8")
    up: dict[Value, Value] = {op.results[0]: b.quantize_linear(x, scale, lowest, to="u8")}
    for mover in movers:
        up[mover.results[0]] = b.like(mover, [up[mover.operands[0]]])
    made: dict[Value, Value] = {}
    for reader in readers:
        b.keep_location(reader)
        codes, step, *base = reader.operands
        lowered = b.scalar((number(base[0]) if base else 0) + _UP, "u8")
        made[reader.results[0]] = b.dequantize_linear(
            up[codes], b.scalar(number(step), dtype_of(step).name), lowered
        )
    return made


def _readers(codes: Value) -> tuple[list[Operation], list[Operation]] | None:
    """What moves the codes, and what makes numbers of them by constants; None where others use
    them, or nobody."""
    movers: list[Operation] = []
    readers: list[Operation] = []
    for user in users(codes):
        if name_of(user) in _MOVERS:
            inside = _readers(user.results[0])
            if inside is None:
                return None
            movers += [user, *inside[0]]
            readers += inside[1]
        elif name_of(user) == "dequantize_linear" and user.operands[0] is codes:
            if any(number(v) is None for v in user.operands[1:]):
                return None
            readers.append(user)
        else:
            return None
    return (movers, readers) if readers else None
