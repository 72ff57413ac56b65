"""numpy's scalars, and the elements of its arrays: they wrap, and never raise."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from cuvil.codegen.llvm_util import F32, F64, I32, I64, declare, i64
from cuvil.codegen.python.emit import Applied, Emit, function
from cuvil.codegen.python.numbers import (
    SIGNS,
    float_floordiv,
    float_modulo,
    floor_division,
)
from cuvil.codegen.python.values import scalar_type
from cuvil.codegen.scalars import emit as emit_scalar
from cuvil.ir.py_types import BOOL, FLOAT, INT, NUMBER, Scalar, Type

SHARED = {
    "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh",
    "sinh": "sinh", "cosh": "cosh", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
}  # fmt: skip
"""numpy's functions that the table of scalar functions has, and their names there."""
ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "round": "rint"}


def dtype_of(kind: Type) -> np.dtype:
    """The element type of a number's value as LLVM sees it."""
    if isinstance(kind, Scalar):
        return np.dtype(kind.dtype)
    return np.dtype({INT: "l", FLOAT: "d", BOOL: "?"}[kind])


def cast(e: Emit, value: ir.Value, source: np.dtype, target: np.dtype) -> ir.Value:
    """A value as another element type, as `astype` does."""
    kind = scalar_type(target.char)
    if target.kind == "b":
        zero = ir.Constant(value.type, 0)
        if source.kind == "f":
            return e.b.fcmp_unordered("!=", value, ir.Constant(value.type, 0.0))
        return value if source.kind == "b" else e.b.icmp_unsigned("!=", value, zero)
    if target.kind == "f":
        return _to_float(e, value, source, kind)
    if source.kind == "f":
        return _float_to_int(e, value, kind)
    if kind.width == value.type.width:
        return value
    if kind.width < value.type.width:
        return e.b.trunc(value, kind)
    return e.b.sext(value, kind) if source.kind == "i" else e.b.zext(value, kind)


def _to_float(e: Emit, value: ir.Value, source: np.dtype, kind: ir.Type) -> ir.Value:
    if source.kind == "f":
        if value.type == kind:
            return value
        return e.b.fpext(value, kind) if kind == F64 else e.b.fptrunc(value, kind)
    return e.b.sitofp(value, kind) if source.kind == "i" else e.b.uitofp(value, kind)


def _float_to_int(e: Emit, value: ir.Value, kind: ir.Type) -> ir.Value:
    """Through 64 or 32 bits, as C does on most machines."""
    wide = I64 if kind.width == 64 or (kind.width == 32 and value.type == F64) else I32
    name = f"llvm.fptosi.sat.i{wide.width}.{value.type.intrinsic_name}"
    found = e.b.call(declare(e.module, name, wide, [value.type]), [value])
    return found if wide.width == kind.width else e.b.trunc(found, kind)


@function("scalar.cast")
def _cast(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    value, kind = args[0], op.kinds[0]
    if kind == NUMBER:
        value, kind = e.b.extract_value(value, 0), FLOAT
    return cast(e, value, dtype_of(kind), dtype_of(op.results[0]))


@function("scalar.checked")
def _checked_cast(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """An int as an integer type; the failure where it does not fit."""
    source, target = dtype_of(op.kinds[0]), dtype_of(op.results[0])
    made = cast(e, args[0], source, target)
    back = cast(e, made, target, source)
    wrong = e.b.icmp_signed("!=", back, args[0])
    if target.kind == "u":
        wrong = e.b.or_(wrong, e.b.icmp_signed("<", args[0], i64(0)))
    e.fail_if(wrong, op.site)
    return made


@function("scalar.add", "scalar.sub", "scalar.mul")
def _arithmetic(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    name, kind = op.fn[7:], dtype_of(op.kinds[0]).kind
    if kind == "b":
        return e.b.or_(*args) if name == "add" else e.b.and_(*args)
    if kind == "f":
        return {"add": e.b.fadd, "sub": e.b.fsub, "mul": e.b.fmul}[name](*args)
    return {"add": e.b.add, "sub": e.b.sub, "mul": e.b.mul}[name](*args)


@function("scalar.truediv")
def _truediv(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.fdiv(*args)


@function("scalar.floordiv", "scalar.mod")
def _division(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    a, b = args
    if dtype_of(op.kinds[0]).kind == "f":
        return _float_division(e, op.fn, a, b)
    zero = e.b.icmp_signed("==", b, ir.Constant(b.type, 0))
    if dtype_of(op.kinds[0]).kind == "u":
        safe = e.b.select(zero, ir.Constant(b.type, 1), b)
        divided = e.b.udiv(a, safe) if op.fn == "scalar.floordiv" else e.b.urem(a, safe)
        return e.b.select(zero, ir.Constant(a.type, 0), divided)
    minus = e.b.icmp_signed("==", b, ir.Constant(b.type, -1))
    safe = e.b.select(e.b.or_(zero, minus), ir.Constant(b.type, 1), b)
    quotient, remainder = floor_division(e, a, safe)
    if op.fn == "scalar.floordiv":
        by_minus = e.b.select(minus, e.b.neg(a), quotient)
        return e.b.select(zero, ir.Constant(a.type, 0), by_minus)
    return e.b.select(e.b.or_(zero, minus), ir.Constant(a.type, 0), remainder)


def _float_division(e: Emit, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """In double, whose remainder of two floats is exact too."""
    wide = a.type == F64
    x, y = (a, b) if wide else (e.b.fpext(a, F64), e.b.fpext(b, F64))
    if name == "scalar.mod":
        found = float_modulo(e, x, y)
        nan = e.b.frem(x, y)
        zero = e.b.fcmp_ordered("==", y, ir.Constant(F64, 0.0))
        found = e.b.select(zero, nan, found)
    else:
        zero = e.b.fcmp_ordered("==", y, ir.Constant(F64, 0.0))
        found = e.b.select(zero, e.b.fdiv(x, y), float_floordiv(e, x, y))
    return found if wide else e.b.fptrunc(found, F32)


@function("scalar.pow")
def _pow(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """Floats; ints with a small literal exponent."""
    base, power = args
    if isinstance(power, ir.Constant) and power.constant in (0, 1, 2, 3, 4):
        return _repeated(e, base, int(power.constant))
    wide = base.type == F64
    x, y = (base, power) if wide else (e.b.fpext(base, F64), e.b.fpext(power, F64))
    found = e.call("pow", F64, [x, y])
    return found if wide else e.b.fptrunc(found, F32)


def _repeated(e: Emit, base: ir.Value, power: int) -> ir.Value:
    is_float = base.type in (F32, F64)
    result = ir.Constant(base.type, 1.0 if is_float else 1)
    for _ in range(power):
        result = e.b.fmul(result, base) if is_float else e.b.mul(result, base)
    return result


@function(*(f"scalar.{name}" for name in SIGNS))
def _compare(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    sign, kind = SIGNS[op.fn[7:]], dtype_of(op.kinds[0]).kind
    if kind == "f":
        return (e.b.fcmp_unordered if sign == "!=" else e.b.fcmp_ordered)(sign, *args)
    return (e.b.icmp_signed if kind == "i" else e.b.icmp_unsigned)(sign, *args)


@function("scalar.and", "scalar.or", "scalar.xor")
def _bits(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return {"and": e.b.and_, "or": e.b.or_, "xor": e.b.xor}[op.fn[7:]](*args)


@function("scalar.invert")
def _invert(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.not_(args[0])


@function("scalar.neg")
def _neg(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.fneg(args[0]) if dtype_of(op.kinds[0]).kind == "f" else e.b.neg(args[0])


@function("scalar.abs")
def _abs(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    kind = dtype_of(op.kinds[0]).kind
    if kind == "f":
        return e.intrinsic("fabs", args)
    if kind in "ub":
        return args[0]
    negative = e.b.icmp_signed("<", args[0], ir.Constant(args[0].type, 0))
    return e.b.select(negative, e.b.neg(args[0]), args[0])


@function("scalar.minimum", "scalar.maximum")
def _extremes(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """numpy's: a NaN wins."""
    a, b = args
    sign, kind = "<" if op.fn == "scalar.minimum" else ">", dtype_of(op.kinds[0]).kind
    if kind == "f":
        first = e.b.or_(e.b.fcmp_ordered(sign, a, b), e.b.fcmp_unordered("uno", a, a))
        return e.b.select(first, a, b)
    compare = e.b.icmp_signed if kind == "i" else e.b.icmp_unsigned
    return e.b.select(compare(sign, a, b), a, b)


@function("scalar.isnan", "scalar.isfinite", "scalar.isinf")
def _class(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    size = e.intrinsic("fabs", args)
    infinite = ir.Constant(size.type, float("inf"))
    if op.fn == "scalar.isnan":
        return e.b.fcmp_unordered("uno", size, size)
    return e.b.fcmp_ordered("<" if op.fn == "scalar.isfinite" else "==", size, infinite)


@function("scalar.where")
def _where(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.select(*args)


@function("scalar.sign")
def _sign(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    x, zero = args[0], ir.Constant(args[0].type, 0)
    if dtype_of(op.kinds[0]).kind == "f":
        up, down = (e.b.uitofp(e.b.fcmp_ordered(s, x, zero), x.type) for s in "><")
        nan = e.b.fcmp_unordered("uno", x, x)
        return e.b.select(nan, x, e.b.fsub(up, down))
    if dtype_of(op.kinds[0]).kind == "u":
        return e.b.zext(e.b.icmp_unsigned(">", x, zero), x.type)
    up, down = (e.b.zext(e.b.icmp_signed(s, x, zero), x.type) for s in "><")
    return e.b.sub(up, down)


@function("scalar.sqrt", *(f"scalar.{name}" for name in (*SHARED, *ROUNDING)))
def _function(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """numpy's functions of one float: within a few units in the last place, nan outside."""
    name = op.fn[7:]
    if name == "sqrt":
        return e.intrinsic("sqrt", args)
    if name in ROUNDING and getattr(e.facts, "rounding", False):
        return e.intrinsic(ROUNDING[name], args)
    if name in ROUNDING:
        wide = args[0] if args[0].type == F64 else e.b.fpext(args[0], F64)
        found = e.call(ROUNDING[name], F64, [wide])
        return found if args[0].type == F64 else e.b.fptrunc(found, F32)
    dtype = "f64" if args[0].type == F64 else "f32"
    return emit_scalar(SHARED[name], e.b, args, dtype, None, e.facts)


@function("float.exp", "float.log", "float.log2", "float.log10", "float.log1p", "float.expm1",
          "float.sin", "float.cos", "float.tan", "float.asin", "float.acos", "float.atan",
          "float.sinh", "float.cosh", "float.tanh", "float.asinh", "float.acosh", "float.atanh",
          "float.erf", "float.erfc", "float.sqrt", "float.exp2")  # fmt: skip
def _math(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """The math module's: C's, and the failure where that gives nan or inf from a finite number."""
    name = op.fn[6:]
    value = e.intrinsic("sqrt", args) if name == "sqrt" else e.call(name, F64, args)
    size, limit = e.intrinsic("fabs", [value]), ir.Constant(F64, float("inf"))
    with e.unlikely(e.b.not_(e.b.fcmp_ordered("<", size, limit))):
        given = e.intrinsic("fabs", args)
        lost = e.b.or_(e.b.fcmp_ordered("<", given, limit), e.b.fcmp_unordered("uno", size, size))
        e.fail_if(e.b.and_(lost, e.b.fcmp_ordered("==", given, given)), op.site)
    return value


@function("float.atan2", "float.hypot", "float.fmod", "float.copysign")
def _math_two(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """The math module's of two numbers; nan and inf are left to the interpreter."""
    name = op.fn[6:]
    if name == "copysign":
        return e.intrinsic("copysign", args)
    value = e.call(name, F64, args)
    size, limit = e.intrinsic("fabs", [value]), ir.Constant(F64, float("inf"))
    e.fail_if(e.b.not_(e.b.fcmp_ordered("<", size, limit)), op.site)
    return value


@function("float.floor", "float.ceil", "float.trunc", "float.rint")
def _rounded(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """As a float."""
    if getattr(e.facts, "rounding", False):
        return e.intrinsic(op.fn[6:], args)
    return e.call(op.fn[6:], F64, args)


@function("float.isnan", "float.isinf", "float.isfinite")
def _float_class(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return _class(e, Applied("scalar." + op.fn[6:], op.kinds, op.results), args)
