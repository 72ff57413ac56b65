"""Steps of the rest of the scalar table: bounded functions, powers, shifts, narrow types, bits."""

from __future__ import annotations

from cuvil.ir.dtypes import DTYPES
from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from tests.fuzz.program import Misfit, Program
from tests.fuzz.steps import Step, is_float

ANYWHERE = ("exp", "exp2", "expm1", "sinh", "cosh", "tan", "asinh")  # from -1 to 1
INSIDE = ("asin", "acos", "atanh")
NARROW = tuple(t.name for t in DTYPES if t.is_narrow)
SAME_SIZE = (("f32", "i32"), ("i32", "u32"), ("i64", "u64"), ("i16", "f16"), ("u8", "i8"))


def is_usual(t: TensorType) -> bool:
    return t.dtype.is_float and not t.dtype.is_narrow


def bounded(p: Program) -> Value:
    """Functions whose argument a tanh keeps small."""
    x = p.pick(is_usual)
    small = p.emit("tanh", x)
    if p.chance(0.5):
        return p.emit(p.choice(ANYWHERE), small)
    half = p.emit("mul", small, p.scalar(0.75, p.kind(x)))
    if p.chance(0.2):
        return p.emit("acosh", p.emit("add", p.emit("abs", half), p.scalar(1.25, p.kind(x))))
    return p.emit(p.choice(INSIDE), half)


def power(p: Program) -> Value:
    """Positive numbers to small powers; exponents that have a form of their own, and not."""
    x = p.pick(is_usual)
    exponent = p.scalar(p.choice((2.0, 3.0, 0.5, -1.0, -0.5, 1.0, 1.5, 2.5)), p.kind(x))
    if p.chance(0.6):
        base = p.emit("add", p.emit("abs", x), p.scalar(0.5, p.kind(x)))
        return p.emit("pow", base, exponent)
    return p.emit("pow", x, p.scalar(p.choice((2.0, 3.0, 1.0)), p.kind(x)))


def kinks(p: Program) -> Value:
    """Functions with jumps, of numbers that are known exactly, and leaky ones of any."""
    if p.chance(0.4):
        return p.emit("leaky_relu", p.pick(is_usual), alpha=p.choice((0.01, 0.25, 2.0, -0.5)))
    x = p.pick_exact(is_usual)
    if p.chance(0.5):
        return p.emit("thresholded_relu", x, alpha=p.choice((0.5, 1.0)), exact=True)
    return p.emit("shrink", x, lambd=p.choice((0.5, 1.0)), bias=p.choice((0.0, 0.25)), exact=True)


def classes(p: Program) -> Value:
    """NaN or infinite; special inputs have some of each."""
    x = p.pick_exact(is_usual)
    if p.chance(0.5):
        return p.emit("isnan", x, exact=True)
    low, high = p.choice(((1, 1), (0, 1), (1, 0)))
    return p.emit("isinf", x, detect_negative=low, detect_positive=high, exact=True)


def shift(p: Program) -> Value:
    x = p.pick(lambda t: t.dtype.is_integer and not t.dtype.is_narrow)
    by = p.constant((), p.kind(x))
    by = p.emit("and", by, p.scalar(p.choice((3, 7)), p.kind(x)), exact=True)
    return p.emit(p.choice(("shift_left", "shift_right")), x, by, exact=True)


def narrow(p: Program) -> Value:
    """To a type that only moves and converts, and perhaps back."""
    to = p.choice(NARROW)
    x = p.pick_exact(lambda t: t.dtype.name in ("f32", "f16", "i32", "i8", "u8", "bool"))
    if p.chance(0.5):
        mode = p.choice(("up", "down", "nearest"))
        small = p.emit(
            "cast_narrow", x, to=to, saturate=p.number(0, 1), round_mode=mode, exact=True
        )
    else:
        small = p.emit("cast", x, to=to, exact=True)
    if p.chance(0.4):
        return small
    return p.emit("cast", small, to=p.choice(("f32", "i32", "f16")), exact=True)


def bits(p: Program) -> Value:
    pair = p.choice(SAME_SIZE)
    source, target = pair if p.chance(0.5) else pair[::-1]
    x = p.pick_exact(lambda t: t.dtype.name == source)
    return p.emit("bitcast", x, of=source, to=target, exact=True)


def clipped(p: Program) -> Value:
    """Between two numbers, in either order of the two."""
    x = p.pick(lambda t: t.dtype.kind != "bool" and not t.dtype.is_narrow)
    low, high = p.scalar(p.choice((-1, 0)), p.kind(x)), p.scalar(p.choice((1, 6)), p.kind(x))
    if not tensor_type(x).dtype.is_signed:
        low = p.scalar(1, p.kind(x))
    if p.chance(0.5):
        return p.emit("min", p.emit("max", x, low, exact=True), high, exact=True)
    return p.emit("max", p.emit("min", x, high, exact=True), low, exact=True)


def affine(p: Program) -> Value:
    """Scales and shifts in a row by constants: rules merge and move them."""
    x = p.pick(is_float)
    for _ in range(p.number(2, 4)):
        shape = p.dims(x)[-1:] if p.chance(0.3) else ()
        try:
            number = p.constant(shape, p.kind(x))
            x = p.emit(p.choice(("add", "mul", "sub", "div")), x, number)
        except Misfit:
            continue
    return x


MATH: tuple[tuple[int, Step], ...] = (
    (4, bounded), (2, power), (2, kinks), (1, classes), (1, shift), (2, narrow), (1, bits),
    (2, clipped), (2, affine),
)  # fmt: skip
