"""Element by element: arithmetic, comparison, logic, and functions of one number."""

from __future__ import annotations

import math
from collections.abc import Callable

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import as_value, cast, common, operands
from cuvil.ops.aten.registry import aten, aten_rows

Pair = Callable[[Cx, Value, Value], Value]


def unary(primitive: str) -> Callable[..., Value]:
    """A function that is one primitive, computed in the type of the result."""

    def compose(cx: Cx, x: Value) -> Value:
        return cx.b.emit(primitive, [as_value(cx, x, cx.result.dtype.name)])

    return compose


_UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh",
    "atan": "atan", "atanh": "atanh", "cos": "cos", "cosh": "cosh", "erf": "erf", "exp": "exp",
    "exp2": "exp2", "expm1": "expm1", "log": "log", "log1p": "log1p", "neg": "neg",
    "reciprocal": "reciprocal", "rsqrt": "rsqrt", "sigmoid": "sigmoid",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
    "bitwise_not": "not",
}  # fmt: skip
aten_rows(unary, _UNARY)
aten_rows(unary, {f"prims.{n}.default": p for n, p in _UNARY.items()})


@aten("relu")
def relu(cx: Cx, x: Value) -> Value:
    """max(x, 0), which unsigned numbers are."""
    return cx.b.relu(x) if cx.type(x).dtype.is_signed else x


def rounding(primitive: str) -> Callable[..., Value]:
    """A function that leaves integers alone."""

    def compose(cx: Cx, x: Value) -> Value:
        return cx.b.emit(primitive, [x]) if cx.type(x).dtype.is_float else x

    return compose


_ROUNDING = {"ceil": "ceil", "floor": "floor", "round": "round", "trunc": "trunc"}
aten_rows(rounding, _ROUNDING)
aten_rows(rounding, {f"prims.{n}.default": p for n, p in _ROUNDING.items()})


@aten("sign", "sgn", "prims.sign.default")
def sign(cx: Cx, x: Value) -> Value:
    """-1, 0 or 1; 0 of a NaN; of a bool itself."""
    if cx.type(x).dtype.name == "bool":
        return x
    found = cx.b.sign(x)
    if not cx.type(x).dtype.is_float:
        return found
    return cx.b.select(cx.b.isnan(x), cx.b.scalar(0, x), found)


def over_ten(base: float) -> Callable[..., Value]:
    """A logarithm to this base."""

    def compose(cx: Cx, x: Value) -> Value:
        value = cx.b.log(as_value(cx, x, cx.result.dtype.name))
        return cx.b.mul(value, cx.b.scalar(1 / math.log(base), value))

    return compose


aten_rows(over_ten, {"log2": 2.0, "log10": 10.0})
aten_rows(over_ten, {"prims.log2.default": 2.0, "prims.log10.default": 10.0})


def test(primitive: str) -> Callable[..., Value]:
    """A test of floats; no integer passes."""

    def compose(cx: Cx, x: Value) -> Value:
        if cx.type(x).dtype.is_float:
            return cx.b.emit(primitive, [x])
        return cx.b.broadcast(cx.b.scalar(False, "bool"), dims=cx.dims(x))

    return compose


aten_rows(test, {"isnan": "isnan", "isinf": "isinf"})


@aten("signbit", "prims.signbit.default")
def signbit(cx: Cx, x: Value) -> Value:
    """Whether the sign is set, which -0.0 and a NaN may have, too."""
    kind = cx.type(x).dtype
    if kind.is_float:
        name = f"i{kind.bits}"
        x = cx.b.bitcast(x, of=kind.name, to=name)
        return cx.b.lt(x, cx.b.scalar(0, name))
    if kind.is_signed:
        return cx.b.lt(x, cx.b.scalar(0, x))
    return cx.b.broadcast(cx.b.scalar(False, "bool"), dims=cx.dims(x))


@aten("copysign.Tensor", "copysign.Scalar")
def copysign(cx: Cx, x: Value, y: Value) -> Value:
    """|x| with the sign of y."""
    x, y = operands(cx, cx.result.dtype.name, x, y)
    size = cx.b.abs(x)
    return cx.b.select(signbit(cx, y), cx.b.neg(size), size)


def _of_bools(cx: Cx, primitive: str, x: Value, y: Value) -> Value:
    logic = {"add": "or", "mul": "and", "max": "or", "min": "and"}
    return cx.b.emit(logic.get(primitive, primitive), [x, y])


def binary(primitive: str) -> Callable[..., Value]:
    """A function of two operands, computed in the type of the result."""

    def compose(cx: Cx, x: Value, y: Value) -> Value:
        kind = cx.result.dtype.name
        x, y = operands(cx, kind, x, y)
        return _of_bools(cx, primitive, x, y) if kind == "bool" else cx.b.emit(primitive, [x, y])

    return compose


aten_rows(
    binary,
    {
        "mul.Tensor": "mul", "mul.Scalar": "mul", "prims.mul.default": "mul",
        "prims.add.default": "add", "prims.sub.default": "sub",
        "maximum": "max", "minimum": "min",
        "prims.maximum.default": "max", "prims.minimum.default": "min",
        "remainder.Tensor": "mod", "remainder.Scalar": "mod", "remainder.Scalar_Tensor": "mod",
        "prims.remainder.default": "mod",
        "fmod.Tensor": "fmod", "fmod.Scalar": "fmod", "prims.fmod.default": "fmod",
        "bitwise_and.Tensor": "and", "bitwise_and.Scalar": "and",
        "bitwise_and.Scalar_Tensor": "and",
        "bitwise_or.Tensor": "or", "bitwise_or.Scalar": "or", "bitwise_or.Scalar_Tensor": "or",
        "bitwise_xor.Tensor": "xor", "bitwise_xor.Scalar": "xor",
        "bitwise_xor.Scalar_Tensor": "xor",
        "prims.bitwise_and.default": "and", "prims.bitwise_or.default": "or",
        "prims.bitwise_xor.default": "xor",
        "bitwise_left_shift.Tensor": "shift_left",
        "bitwise_left_shift.Tensor_Scalar": "shift_left",
        "bitwise_left_shift.Scalar_Tensor": "shift_left",
        "bitwise_right_shift.Tensor": "shift_right",
        "bitwise_right_shift.Tensor_Scalar": "shift_right",
        "bitwise_right_shift.Scalar_Tensor": "shift_right",
        "__lshift__.Tensor": "shift_left", "__lshift__.Scalar": "shift_left",
        "__rshift__.Tensor": "shift_right", "__rshift__.Scalar": "shift_right",
        "prims.shift_left.default": "shift_left",
        "prims.shift_right_arithmetic.default": "shift_right",
    },
)  # fmt: skip


def _scaled(cx: Cx, x: Value, alpha: Value) -> Value:
    return x if alpha == 1 else cx.b.mul(x, as_value(cx, alpha, cx.type(x).dtype.name))


@aten("add.Tensor", "add.Scalar")
def add(cx: Cx, x: Value, y: Value, alpha: Value = 1) -> Value:
    """x + alpha * y; of bools, whether either holds."""
    kind = cx.result.dtype.name
    x, y = operands(cx, kind, x, y)
    if kind == "bool":
        return cx.b.or_(x, y) if alpha else x
    return cx.b.add(x, _scaled(cx, y, alpha))


@aten("sub.Tensor", "sub.Scalar")
def sub(cx: Cx, x: Value, y: Value, alpha: Value = 1) -> Value:
    """x - alpha * y."""
    x, y = operands(cx, cx.result.dtype.name, x, y)
    return cx.b.sub(x, _scaled(cx, y, alpha))


@aten("rsub.Tensor", "rsub.Scalar")
def rsub(cx: Cx, x: Value, y: Value, alpha: Value = 1) -> Value:
    """y - alpha * x."""
    return sub(cx, y, x, alpha)


@aten("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar")
def div(cx: Cx, x: Value, y: Value) -> Value:
    """The quotient, of integers in floats."""
    return cx.b.div(*operands(cx, cx.result.dtype.name, x, y))


@aten("prims.div.default")
def div_of_kind(cx: Cx, x: Value, y: Value) -> Value:
    """The quotient; of integers rounded towards zero."""
    return cx.b.div(*operands(cx, cx.result.dtype.name, x, y))


@aten("div.Tensor_mode", "div.Scalar_mode")
def div_mode(cx: Cx, x: Value, y: Value, rounding_mode: str | None = None) -> Value:
    """The quotient, rounded towards zero ("trunc") or down ("floor")."""
    if rounding_mode == "floor":
        return floor_divide(cx, x, y)
    found = div(cx, x, y)
    rounded = rounding_mode == "trunc" and cx.result.dtype.is_float
    return cx.b.trunc(found) if rounded else found


@aten("floor_divide", "floor_divide.Scalar")
def floor_divide(cx: Cx, x: Value, y: Value) -> Value:
    """The quotient rounded down, as Python has it."""
    kind = cx.result.dtype.name
    if kind == "bool":
        return cx.b.and_(*operands(cx, kind, x, y))
    x, y = operands(cx, "f32" if kind in ("f16", "bf16") else kind, x, y)
    b, zero, one = cx.b, cx.b.scalar(0, x), cx.b.scalar(1, x)
    rest = b.fmod(x, y)
    apart = b.xor(b.lt(y, zero), b.lt(rest, zero))
    above = b.and_(b.ne(rest, zero), apart)
    if cx.result.dtype.is_float:
        whole = b.div(b.sub(x, rest), y)
        return cast(cx, _nearest(cx, b.select(above, b.sub(whole, one), whole), x, y), kind)
    whole = b.div(x, y)
    return b.select(above, b.sub(whole, one), whole) if cx.result.dtype.is_signed else whole


def _nearest(cx: Cx, whole: Value, x: Value, y: Value) -> Value:
    """The integer nearest to what is x / y rounded down but for its last bits; 0 has the sign of
    the quotient, and by 0 it is the quotient."""
    b, zero = cx.b, cx.b.scalar(0, x)
    down = b.floor(whole)
    above = b.gt(b.sub(whole, down), b.scalar(0.5, whole))
    rounded = b.select(above, b.add(down, b.scalar(1, down)), down)
    exact = b.div(x, y)  # by zero: an infinity or NaN
    nothing = b.select(signbit(cx, exact), b.scalar(-0.0, x), zero)
    rounded = b.select(b.eq(whole, zero), nothing, rounded)
    return b.select(b.eq(y, zero), exact, rounded)


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", "prims.pow.default")
def power(cx: Cx, x: Value, y: Value) -> Value:
    """x ** y in the type of the result."""
    if cx.result.dtype.name == "bool":
        cx.fail("a power of bools")
    return cx.b.pow(*operands(cx, cx.result.dtype.name, x, y))


def compare(primitive: str) -> Callable[..., Value]:
    """A comparison in the type that holds both operands."""

    def compose(cx: Cx, x: Value, y: Value) -> Value:
        kind = common(cx, x, y)
        ordered = primitive not in ("eq", "ne")
        return cx.b.emit(
            primitive, operands(cx, "u8" if kind == "bool" and ordered else kind, x, y)
        )

    return compose


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    aten_rows(compare, {f"{_name}.Tensor": _name, f"{_name}.Scalar": _name})
    aten_rows(compare, {f"prims.{_name}.default": _name})


def logical(primitive: str) -> Callable[..., Value]:
    """A function of truths."""

    def compose(cx: Cx, *args: Value) -> Value:
        return cx.b.emit(primitive, operands(cx, "bool", *args))

    return compose


aten_rows(
    logical,
    {"logical_and": "and", "logical_or": "or", "logical_xor": "xor", "logical_not": "not"},
)


@aten("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar", "prims.where.default")
def where(cx: Cx, condition: Value, x: Value, y: Value) -> Value:
    """Elements of x where the condition holds, else of y."""
    x, y = operands(cx, cx.result.dtype.name, x, y)
    return cx.b.select(cast(cx, condition, "bool"), x, y)


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(cx: Cx, x: Value, mask: Value, value: Value) -> Value:
    """A number where the mask holds."""
    return where(cx, mask, value, x)


def _smaller(cx: Cx, x: Value, y: Value) -> Value:
    return _of_bools(cx, "min", x, y) if cx.result.dtype.name == "bool" else cx.b.min(x, y)


def _greater(cx: Cx, x: Value, y: Value) -> Value:
    return _of_bools(cx, "max", x, y) if cx.result.dtype.name == "bool" else cx.b.max(x, y)


@aten("clamp", "clamp.Tensor")
def clamp(cx: Cx, x: Value, low: Value = None, high: Value = None) -> Value:
    """min(max(x, low), high)."""
    kind = cx.result.dtype.name
    x = as_value(cx, x, kind)
    if low is not None:
        x = _greater(cx, x, as_value(cx, low, kind))
    return x if high is None else _smaller(cx, x, as_value(cx, high, kind))


@aten("clamp_min", "clamp_min.Tensor")
def clamp_min(cx: Cx, x: Value, low: Value) -> Value:
    """max(x, low)."""
    return clamp(cx, x, low)


@aten("clamp_max", "clamp_max.Tensor")
def clamp_max(cx: Cx, x: Value, high: Value) -> Value:
    """min(x, high)."""
    return clamp(cx, x, None, high)


def number_of(primitive: Pair) -> Callable[..., Value]:
    """An extreme that takes the other operand for a NaN."""

    def compose(cx: Cx, x: Value, y: Value) -> Value:
        x, y = operands(cx, cx.result.dtype.name, x, y)
        found = primitive(cx, x, y)
        if not cx.result.dtype.is_float:
            return found
        return cx.b.select(cx.b.isnan(x), y, cx.b.select(cx.b.isnan(y), x, found))

    return compose


aten_rows(number_of, {"fmax": _greater, "fmin": _smaller})
aten_rows(number_of, {"prims.fmax.default": _greater, "prims.fmin.default": _smaller})


@aten("erfc", "prims.erfc.default")
def erfc(cx: Cx, x: Value) -> Value:
    """1 - erf(x), in 64 bits, where little is left of the difference."""
    kind = cx.result.dtype.name
    wide = as_value(cx, x, "f64")
    return cast(cx, cx.b.sub(cx.b.scalar(1, wide), cx.b.erf(wide)), kind)


@aten("atan2", "prims.atan2.default")
def atan2(cx: Cx, y: Value, x: Value) -> Value:
    """The angle of (x, y), in all four quadrants."""
    b, kind = cx.b, cx.result.dtype.name
    y, x = operands(cx, kind, y, x)
    size, other = b.abs(y), b.abs(x)
    zero, steep = b.scalar(0, kind), b.gt(size, other)
    long = b.select(steep, size, other)
    short = b.select(steep, other, size)
    both = b.and_(b.isinf(long), b.isinf(short))
    ratio = b.select(both, b.scalar(1, kind), b.div(short, long))
    ratio = b.select(b.eq(b.add(long, short), zero), long, ratio)  # a NaN stays
    angle = b.atan(ratio)
    angle = b.select(steep, b.sub(b.scalar(math.pi / 2, kind), angle), angle)
    angle = b.select(signbit(cx, x), b.sub(b.scalar(math.pi, kind), angle), angle)
    return b.select(signbit(cx, y), b.neg(angle), angle)


@aten("hypot", "prims.hypot.default")
def hypot(cx: Cx, x: Value, y: Value) -> Value:
    """The length of (x, y), infinite beside a NaN too; no square overflows."""
    b, kind = cx.b, cx.result.dtype.name
    x, y = operands(cx, "f64", x, y)
    one, endless = b.scalar(1, "f64"), b.or_(b.isinf(x), b.isinf(y))
    if kind == "f64":
        scale = b.max(b.abs(x), b.abs(y))
        scale = b.select(b.eq(scale, b.scalar(0, "f64")), one, scale)
        x, y = b.div(x, scale), b.div(y, scale)
    length = b.sqrt(b.add(b.mul(x, x), b.mul(y, y)))
    if kind == "f64":
        length = b.mul(length, scale)
    return cast(cx, b.select(endless, b.scalar(math.inf, "f64"), length), kind)


@aten("_to_copy", "prims.convert_element_type.default")
def to_copy(cx: Cx, x: Value, *_: Value, **__: Value) -> Value:
    """As another element type."""
    return cast(cx, x, cx.result.dtype.name)


@aten("clone", "alias", "detach", "lift_fresh", "lift_fresh_copy", "contiguous", "view_of",
      "prims.clone.default", "prims.device_put.default", "prims.view_of.default")  # fmt: skip
def same(cx: Cx, x: Value, *_: Value, **__: Value) -> Value:
    """The tensor as it is: every value of the graph is dense and its own."""
    return x


@aten("copy")
def copy(cx: Cx, x: Value, source: Value, non_blocking: bool = False) -> Value:
    """Another tensor's elements, in this one's shape and type."""
    source = cast(cx, source, cx.result.dtype.name)
    same_dims = cx.dims(source) == cx.result.dims
    return source if same_dims else cx.b.broadcast(source, dims=cx.result.dims)


@aten("angle")
def angle(cx: Cx, x: Value) -> Value:
    """pi for a negative number, 0 for others."""
    x = as_value(cx, x, cx.result.dtype.name)
    found = cx.b.select(cx.b.lt(x, cx.b.scalar(0, x)), cx.b.scalar(math.pi, x), cx.b.scalar(0, x))
    return cx.b.select(cx.b.isnan(x), x, found)


@aten("nextafter", "prims.nextafter.default")
def nextafter(cx: Cx, x: Value, y: Value) -> Value:
    """The float next to x on the way to y."""
    kind = cx.result.dtype
    name, b = f"i{kind.bits}", cx.b
    x, y = operands(cx, kind.name, x, y)
    one, zero = b.scalar(1, name), b.scalar(0, x)
    bits = b.bitcast(x, of=kind.name, to=name)
    away = b.eq(b.gt(y, x), b.gt(x, zero))
    moved = b.bitcast(b.select(away, b.add(bits, one), b.sub(bits, one)), of=name, to=kind.name)
    least = b.bitcast(one, of=name, to=kind.name)
    moved = b.select(b.eq(x, zero), b.select(b.gt(y, zero), least, b.neg(least)), moved)
    bad = b.or_(b.isnan(x), b.isnan(y))
    moved = b.select(bad, b.add(x, y), moved)
    return b.select(b.eq(x, y), y, moved)


@aten("frexp.Tensor", "prims.frexp.default")
def frexp(cx: Cx, x: Value) -> tuple[Value, Value]:
    """x as a fraction of size [1/2, 1) times a power of 2; 0 and what is not finite as it is."""
    b, kind = cx.b, cx.type(x).dtype.name
    if kind == "f64":
        cx.fail("the exponents of f64")
    value = b.cast(x, to="f64")  # there nothing that x can be is subnormal
    bits = b.bitcast(value, of="f64", to="i64")
    field = b.and_(b.emit("shift_right", [bits, b.scalar(52, "i64")]), b.scalar(0x7FF, "i64"))
    others = b.and_(bits, b.scalar(~(0x7FF << 52), "i64"))
    fraction = b.bitcast(b.or_(others, b.scalar(0x3FE << 52, "i64")), of="i64", to="f64")
    special = b.or_(b.eq(field, b.scalar(0, "i64")), b.eq(field, b.scalar(0x7FF, "i64")))
    exponent = b.select(special, b.scalar(0, "i64"), b.sub(field, b.scalar(0x3FE, "i64")))
    return cast(cx, b.select(special, value, fraction), kind), b.cast(exponent, to="i32")
