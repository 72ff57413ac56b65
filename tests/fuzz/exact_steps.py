"""Steps for inputs with NaN, infinities, zeros of both signs and denormals: what is exact."""

from __future__ import annotations

from cuvil.ir.names import Value
from tests.fuzz.math_steps import classes, clipped, is_usual, kinks
from tests.fuzz.program import Program
from tests.fuzz.steps import (
    Step,
    arg_reduce,
    compare,
    concat,
    gather,
    is_float,
    is_number,
    pad,
    reshape,
    rounding,
    select,
    slice_,
    top_k,
    transpose,
)


def moved(p: Program) -> Value:
    name = p.choice(("relu", "neg", "abs", "identity", "sign"))
    return p.emit(name, p.pick(is_float), exact=True)


def least(p: Program) -> Value:
    x = p.pick(is_number)
    return p.emit(p.choice(("min", "max", "max")), x, p.mate(x), exact=True)


def added(p: Program) -> Value:
    """Divisors are constants: the sign of a zero that was computed is not promised."""
    x = p.pick(is_usual)
    if p.chance(0.6):
        return p.emit(p.choice(("add", "sub", "mul")), x, p.mate(x), exact=True)
    number = p.scalar(p.choice((0.0, -0.0, 1.0, 2.0)), p.kind(x))
    return p.emit(p.choice(("add", "sub", "mul", "div")), x, number, exact=True)


def extreme(p: Program) -> Value:
    x = p.pick(lambda t: t.rank >= 1 and is_number(t))
    axes = [p.number(0, len(p.dims(x)) - 1)]
    if p.is_empty(x):
        return p.emit("identity", x, exact=True)
    return p.emit("reduce", x, kind=p.choice(("max", "min")), axes=axes, keepdims=p.chance(0.5),
                  exact=True)  # fmt: skip


def converted(p: Program) -> Value:
    """Saturates: NaN becomes 0, an infinity the end of the range."""
    to = p.choice(("i32", "i64", "u8", "i8", "bool", "f64", "f16", "f32", "bf16"))
    return p.emit("cast", p.pick_exact(), to=to, exact=True)


EXACT: tuple[tuple[int, Step], ...] = (
    (4, moved), (5, least), (4, added), (3, extreme), (2, converted), (2, rounding), (3, compare),
    (3, select), (2, kinks), (2, classes), (3, clipped), (2, arg_reduce), (1, top_k),
    (2, transpose), (2, reshape), (2, slice_), (1, pad), (1, concat), (1, gather),
)  # fmt: skip
