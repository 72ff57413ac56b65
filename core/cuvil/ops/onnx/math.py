"""Element-wise arithmetic, comparison and logic."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import ml_dtypes

from cuvil.ops.compose.helpers import fitted, narrow, unsqueezed
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op, onnx_rows


def unary(primitive: str) -> Callable[..., Value]:
    """The function of an operator that is one primitive."""

    def compose(cx: Cx, x: Value) -> Value:
        return cx.b.emit(primitive, [x])

    return compose


def unary_legacy(primitive: str) -> Callable[..., Value]:
    """As `unary`; before opset 6 operators said which buffers they consume."""

    def compose(cx: Cx, x: Value, *, consumed_inputs: tuple[int, ...] = ()) -> Value:
        return cx.b.emit(primitive, [x])

    return compose


def binary(primitive: str) -> Callable[..., Value]:
    """The function of an operator on two operands that broadcast as in numpy."""

    def compose(cx: Cx, a: Value, b: Value) -> Value:
        return cx.b.emit(primitive, [a, b])

    return compose


def binary_legacy(primitive: str) -> Callable[..., Value]:
    """As `binary`, before opset 7: `b` is spread from `axis` on, if asked."""

    def compose(
        cx: Cx,
        a: Value,
        b: Value,
        *,
        axis: int | None = None,
        broadcast: int = 0,
        consumed_inputs: tuple[int, ...] = (),
    ) -> Value:
        rank, own = cx.type(a).rank, cx.type(b).rank
        if broadcast and axis is not None:
            b = unsqueezed(cx, b, range(own, rank - axis % rank))
        elif not broadcast:
            if rank != own:
                cx.bad("operands of different shapes without broadcast=1")
            b = fitted(cx, b, cx.dims(a))
        return cx.b.emit(primitive, [a, b])

    return compose


def variadic(primitive: str) -> Callable[..., Value]:
    """The function of an operator that folds any number of operands."""

    def compose(cx: Cx, x: Value, *rest: Value, consumed_inputs: tuple[int, ...] = ()) -> Value:
        return reduce(lambda a, b: cx.b.emit(primitive, [a, b]), rest, x)

    return compose


MOST = 3.4028234663852886e38  # the largest float32
_ARITHMETIC = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
_LOGIC = {"And": "and", "Or": "or", "Xor": "xor", "Equal": "eq", "Less": "lt", "Greater": "gt"}

onnx_rows(binary_legacy, _ARITHMETIC | _LOGIC)
onnx_rows(binary, _ARITHMETIC | _LOGIC, since=7)
onnx_rows(binary, {"LessOrEqual": "le", "GreaterOrEqual": "ge"}, since=12)
onnx_rows(binary, {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"}, since=18)
onnx_rows(variadic, {"Sum": "add", "Min": "min", "Max": "max"})
onnx_rows(
    unary_legacy,
    {
        "Abs": "abs",
        "Ceil": "ceil",
        "Exp": "exp",
        "Floor": "floor",
        "Log": "log",
        "Neg": "neg",
        "Reciprocal": "reciprocal",
        "Sigmoid": "sigmoid",
        "Sqrt": "sqrt",
        "Tanh": "tanh",
    },
)
onnx_rows(
    unary,
    {
        "Acos": "acos",
        "Acosh": "acosh",
        "Asin": "asin",
        "Asinh": "asinh",
        "Atan": "atan",
        "Atanh": "atanh",
        "BitwiseNot": "not",
        "Cos": "cos",
        "Cosh": "cosh",
        "Erf": "erf",
        "IsNaN": "isnan",
        "Not": "not",
        "Round": "round",
        "Sign": "sign",
        "Sin": "sin",
        "Sinh": "sinh",
        "Tan": "tan",
    },
)


@onnx_op("Mean")
def mean(cx: Cx, x: Value, *rest: Value, consumed_inputs: tuple[int, ...] = ()) -> Value:
    """The element-wise mean of the operands."""
    total = reduce(cx.b.add, rest, x)
    return cx.b.div(total, cx.b.scalar(1 + len(rest), total))


@onnx_op("Pow", since=7)
def power(cx: Cx, x: Value, y: Value) -> Value:
    """The result has the type of the base; a float exponent of an integer is computed in floats."""
    base, exponent = cx.type(x).dtype, cx.type(y).dtype
    if base.is_integer and exponent.is_float:
        return narrow(cx, cx.b.pow(cx.b.cast(x, to=exponent.name), y), x)
    return cx.b.pow(x, narrow(cx, y, x))


@onnx_op("Pow")
def power_legacy(
    cx: Cx, x: Value, y: Value, *, axis: int | None = None, broadcast: int = 0
) -> Value:
    """Before opset 7."""
    return binary_legacy("pow")(cx, x, y, axis=axis, broadcast=broadcast)


@onnx_op("Mod", since=10)
def modulo(cx: Cx, a: Value, b: Value, *, fmod: int = 0) -> Value:
    """fmod=1: the sign of the dividend; else that of the divisor."""
    return cx.b.fmod(a, b) if fmod else cx.b.mod(a, b)


@onnx_op("BitShift", since=11)
def bit_shift(cx: Cx, x: Value, y: Value, *, direction: str) -> Value:
    """Shifts in zeros from either side."""
    if direction not in ("LEFT", "RIGHT"):
        cx.bad(f"direction {direction!r} is neither LEFT nor RIGHT")
    return cx.b.shift_left(x, y) if direction == "LEFT" else cx.b.shift_right(x, y)


@onnx_op("IsInf", since=10)
def is_inf(cx: Cx, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    """Which elements are an infinity of a sign that is asked for."""
    return cx.b.isinf(x, detect_negative=detect_negative, detect_positive=detect_positive)


@onnx_op("Where", since=9)
def where(cx: Cx, condition: Value, x: Value, y: Value) -> Value:
    """Elements of x where the condition holds, else of y."""
    return cx.b.select(condition, x, y)


@onnx_op("Clip")
def clip_attributes(
    cx: Cx,
    x: Value,
    *,
    min: float | None = None,
    max: float | None = None,
    consumed_inputs: tuple[int, ...] = (),
) -> Value:
    """Bounds as attributes, which may be absent, or beyond what the element type can hold."""
    most = float(ml_dtypes.finfo(cx.type(x).dtype.numpy).max)
    low = None if min is None or min < -most else cx.b.scalar(min, x)
    high = None if max is None or max > most else cx.b.scalar(max, x)
    return clip(cx, x, low, high)


@onnx_op("Clip", since=6)
def clip_to_finite(cx: Cx, x: Value, *, min: float = -MOST, max: float = MOST) -> Value:
    """Absent bounds are the largest finite numbers, before opset 11."""
    return clip_attributes(cx, x, min=min, max=max)


@onnx_op("Clip", since=11)
def clip(cx: Cx, x: Value, low: Value = None, high: Value = None) -> Value:
    """min(max(x, low), high): the upper bound wins, NaN stays."""
    if low is not None:
        x = cx.b.max(x, low)
    return x if high is None else cx.b.min(x, high)
