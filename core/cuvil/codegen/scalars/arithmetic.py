"""Arithmetic, rounding, comparison and logic of floats and booleans."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.scalars.math_builder import MathBuilder, fact
from cuvil.codegen.scalars.registry import emitter

_NUMBERS = ("int", "uint", "float")
_ALL = ("bool", *_NUMBERS)
_LOGIC = ("bool", "int", "uint")


@emitter("identity", kinds=_ALL)
def _identity(m: MathBuilder, x: ir.Value) -> ir.Value:
    return x


@emitter("add", "sub", "mul", kinds=_NUMBERS)
def _arithmetic(m: MathBuilder, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    operation = {"add": m.add, "sub": m.sub, "mul": m.mul}[name]
    return operation(a, b)


@emitter("div")
def _div(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    return m.div(a, b)


@emitter("reciprocal")
def _reciprocal(m: MathBuilder, x: ir.Value) -> ir.Value:
    return m.div(1.0, x)


@emitter("sqrt")
def _sqrt(m: MathBuilder, x: ir.Value) -> ir.Value:
    return m.sqrt(x)


@emitter("rsqrt")
def _rsqrt(m: MathBuilder, x: ir.Value) -> ir.Value:
    return m.div(1.0, m.sqrt(x))


@emitter("neg", kinds=_NUMBERS)
def _neg(m: MathBuilder, x: ir.Value) -> ir.Value:
    return m.neg(x)


@emitter("abs", kinds=_NUMBERS)
def _abs(m: MathBuilder, x: ir.Value) -> ir.Value:
    if m.is_float:
        return m.abs(x)
    return x if m.dtype.kind == "uint" else m.select(m.compare("lt", x, 0), m.neg(x), x)


@emitter("sign", kinds=_NUMBERS)
def _sign(m: MathBuilder, x: ir.Value) -> ir.Value:
    """-1, 0 or 1; NaN for NaN. Zero keeps no sign."""
    below = -1 if m.dtype.is_signed else 1
    value = m.select(m.compare("gt", x, 0), 1, m.select(m.compare("lt", x, 0), below, 0))
    return m.select(m.is_nan(x), x, value) if m.is_float else value


@emitter("min", "max", kinds=_NUMBERS)
def _extremum(m: MathBuilder, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """A NaN operand is the result."""
    if m.is_float:
        return m.extremum(f"{name}imum", a, b)
    return m.select(m.compare("lt" if name == "min" else "gt", b, a), b, a)


@emitter("floor", "ceil", "round", "trunc")
def rounded(m: MathBuilder, name: str, x: ir.Value) -> ir.Value:
    """A float rounded to a whole number; the sign of zero stays."""
    if fact(m.facts, "rounding"):
        return m.intrinsic("rint" if name == "round" else name, x)
    magic = 2.0**52 if m.is_double else 2.0**23
    size = m.abs(x)
    nearest = m.exact_sub(m.exact_add(size, magic), magic)  # of |x|, by the last place of magic
    if name == "trunc":
        nearest = _step(m, nearest, "gt", size, -1.0)
    value = m.copysign(nearest, x)
    if name == "floor":
        value = _step(m, value, "gt", x, -1.0)
    if name == "ceil":
        value = _step(m, value, "lt", x, 1.0)
    value = m.copysign(value, x)
    return m.select(m.compare("lt", size, magic), value, x)  # larger ones are whole; NaN stays


def _step(m: MathBuilder, value: ir.Value, relation: str, x: ir.Value, by: float) -> ir.Value:
    return m.exact_add(value, m.select(m.compare(relation, value, x), by, 0.0))


@emitter("eq", "ne", "lt", "le", "gt", "ge", kinds=_ALL)
def _compare(m: MathBuilder, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    return m.compare(name, a, b)


@emitter("isnan")
def _isnan(m: MathBuilder, x: ir.Value) -> ir.Value:
    return m.is_nan(x)


@emitter("isinf")
def _isinf(
    m: MathBuilder, x: ir.Value, detect_negative: int = 1, detect_positive: int = 1
) -> ir.Value:
    if detect_negative and detect_positive:
        return m.compare("eq", m.abs(x), float("inf"))
    if not detect_negative and not detect_positive:
        return m.b.and_(m.is_nan(x), m.compare("eq", x, x))  # never
    return m.compare("eq", x, float("inf") if detect_positive else -float("inf"))


@emitter("select", kinds=_ALL)
def _select(m: MathBuilder, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return m.select(condition, a, b)


@emitter("and", "or", "xor", kinds=_LOGIC)
def _logic(m: MathBuilder, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    operation = {"and": m.b.and_, "or": m.b.or_, "xor": m.b.xor}[name]
    return operation(a, b)


@emitter("not", kinds=_LOGIC)
def _not(m: MathBuilder, x: ir.Value) -> ir.Value:
    return m.b.xor(x, m.constant(-1 if m.width > 1 else 1))
