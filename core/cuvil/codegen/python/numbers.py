"""Python's own numbers: ints that must fit 64 bits, floats whose failures raise."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from cuvil.codegen.llvm_util import F64, I1, I64, declare, i64
from cuvil.codegen.python.emit import Applied, Emit, function
from cuvil.codegen.python.values import struct
from cuvil.ir.py_types import FLOAT, INT, NUMBER

SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
EXACT = 1 << 53


def f64(value: float) -> ir.Constant:
    """A double constant."""
    return ir.Constant(F64, float(value))


def checked(e: Emit, name: str, a: ir.Value, b: ir.Value, site: int) -> ir.Value:
    """`a name b` on ints; the failure where 64 bits do not hold it. name: sadd, ssub, smul."""
    kind = ir.LiteralStructType([I64, I1])
    callee = declare(e.module, f"llvm.{name}.with.overflow.i64", kind, [I64, I64])
    pair = e.b.call(callee, [a, b])
    e.fail_if(e.b.extract_value(pair, 1), site)
    return e.b.extract_value(pair, 0)


@function("int.add", "int.sub", "int.mul")
def _int_arithmetic(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return checked(e, "s" + op.fn[4:], args[0], args[1], op.site)


@function("int.next")
def _int_next(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """One more, of a count that memory bounds."""
    return e.b.add(args[0], i64(1), flags=("nsw",))


@function("int.neg")
def _int_neg(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return checked(e, "ssub", i64(0), args[0], op.site)


@function("int.abs")
def _int_abs(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    negative = e.b.icmp_signed("<", args[0], i64(0))
    e.fail_if(e.b.icmp_signed("==", args[0], i64(-(1 << 63))), op.site)
    return e.b.select(negative, e.b.neg(args[0]), args[0])


def floor_division(e: Emit, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Quotient towards minus infinity and a remainder with the sign of b, which is not 0."""
    quotient, remainder = e.b.sdiv(a, b), e.b.srem(a, b)
    differ = e.b.icmp_signed("<", e.b.xor(remainder, b), ir.Constant(a.type, 0))
    wrong = e.b.and_(e.b.icmp_signed("!=", remainder, ir.Constant(a.type, 0)), differ)
    below = e.b.sub(quotient, ir.Constant(a.type, 1))
    return e.b.select(wrong, below, quotient), e.b.select(wrong, e.b.add(remainder, b), remainder)


@function("int.floordiv", "int.mod")
def _int_division(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    a, b = args
    e.fail_if(e.b.icmp_signed("==", b, i64(0)), op.site)
    lowest = e.b.icmp_signed("==", a, i64(-(1 << 63)))
    e.fail_if(e.b.and_(lowest, e.b.icmp_signed("==", b, i64(-1))), op.site)
    return floor_division(e, a, b)[op.fn == "int.mod"]


@function("int.truediv")
def _int_truediv(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.fail_if(e.b.icmp_signed("==", args[1], i64(0)), op.site)
    a, b = (_exact(e, value, op.site) for value in args)
    return e.b.fdiv(a, b)


def _exact(e: Emit, value: ir.Value, site: int) -> ir.Value:
    """An int as a float that is equal to it; the failure where there is none for sure."""
    shifted = e.b.add(value, i64(EXACT))
    e.fail_if(e.b.icmp_unsigned(">", shifted, i64(2 * EXACT)), site)
    return e.b.sitofp(value, F64)


@function("float.exact")
def _float_exact(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return _exact(e, args[0], op.site)


@function("int.pow")
def _int_pow(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """By squaring; a negative exponent would give a float."""
    base, power = args
    if isinstance(power, ir.Constant) and 0 <= power.constant <= 4:
        result = i64(1) if power.constant == 0 else base
        for _ in range(power.constant - 1):
            result = checked(e, "smul", result, base, op.site)
        return result
    e.fail_if(e.b.icmp_signed("<", power, i64(0)), op.site)
    result, square, left = (e.variable(I64) for _ in range(3))
    for value, place in ((i64(1), result), (base, square), (power, left)):
        e.b.store(value, place)
    head, body, end = (e.b.append_basic_block(n) for n in ("pow", "odd", "done"))
    e.b.branch(head)
    e.b.position_at_end(head)
    rest = e.b.load(left, typ=I64)
    e.b.cbranch(e.b.icmp_signed(">", rest, i64(0)), body, end)
    e.b.position_at_end(body)
    with e.b.if_then(e.b.trunc(rest, I1)):
        product = checked(e, "smul", e.b.load(result, typ=I64), e.b.load(square, typ=I64), op.site)
        e.b.store(product, result)
    e.b.store(e.b.lshr(rest, i64(1)), left)
    with e.b.if_then(e.b.icmp_signed(">", rest, i64(1))):
        value = e.b.load(square, typ=I64)
        e.b.store(checked(e, "smul", value, value, op.site), square)
    e.b.branch(head)
    e.b.position_at_end(end)
    return e.b.load(result, typ=I64)


@function("int.and", "int.or", "int.xor", "bool.and", "bool.or", "bool.xor")
def _bits(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    name = op.fn.partition(".")[2]
    return {"and": e.b.and_, "or": e.b.or_, "xor": e.b.xor}[name](*args)


@function("int.invert")
def _invert(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.not_(args[0])


@function("int.lshift")
def _lshift(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    value, count = args
    e.fail_if(e.b.icmp_unsigned(">", count, i64(62)), op.site)
    shifted = e.b.shl(value, count)
    e.fail_if(e.b.icmp_signed("!=", e.b.ashr(shifted, count), value), op.site)
    return shifted


@function("int.rshift")
def _rshift(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    value, count = args
    e.fail_if(e.b.icmp_signed("<", count, i64(0)), op.site)
    most = e.b.select(e.b.icmp_signed(">", count, i64(63)), i64(63), count)
    return e.b.ashr(value, most)


@function(*(f"int.{name}" for name in SIGNS))
def _int_compare(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.icmp_signed(SIGNS[op.fn[4:]], *args)


@function("bool.not")
def _not(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.not_(args[0])


@function("bool.of_int", "bool.of_float")
def _truth(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    if op.fn == "bool.of_int":
        return e.b.icmp_signed("!=", args[0], ir.Constant(args[0].type, 0))
    return e.b.fcmp_unordered("!=", args[0], ir.Constant(args[0].type, 0.0))


@function("int.of_bool")
def _int_of_bool(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.zext(args[0], I64)


@function("int.of_float")
def _int_of_float(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """Towards zero; the failure for what is no number or too large."""
    limit = f64(float(1 << 63))
    good = e.b.fcmp_ordered("<", e.intrinsic("fabs", args), limit)
    e.fail_if(e.b.not_(good), op.site)
    return e.b.fptosi(args[0], I64)


@function("float.of_int")
def _float_of_int(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.sitofp(args[0], F64)


@function("float.add", "float.sub", "float.mul")
def _float_arithmetic(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return {"add": e.b.fadd, "sub": e.b.fsub, "mul": e.b.fmul}[op.fn[6:]](*args)


@function("float.truediv")
def _float_truediv(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.fail_if(e.b.fcmp_ordered("==", args[1], f64(0)), op.site)
    return e.b.fdiv(*args)


def float_modulo(e: Emit, a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder with the sign of b, which is not 0, as Python's float.__mod__."""
    remainder = e.b.frem(a, b)
    zero = ir.Constant(a.type, 0.0)
    other = e.b.xor(e.b.fcmp_ordered("<", b, zero), e.b.fcmp_ordered("<", remainder, zero))
    moved = e.b.select(other, e.b.fadd(remainder, b), remainder)
    nothing = e.b.fcmp_ordered("==", remainder, zero)
    return e.b.select(nothing, e.intrinsic("copysign", [zero, b]), moved)


@function("float.mod")
def _float_mod(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.fail_if(e.b.fcmp_ordered("==", args[1], f64(0)), op.site)
    return float_modulo(e, *args)


def float_floordiv(e: Emit, a: ir.Value, b: ir.Value) -> ir.Value:
    """The floor of a / b as Python finds it: by the remainder, b not 0."""
    zero, one = ir.Constant(a.type, 0.0), ir.Constant(a.type, 1.0)
    remainder = e.b.frem(a, b)
    quotient = e.b.fdiv(e.b.fsub(a, remainder), b)
    other = e.b.xor(e.b.fcmp_ordered("<", b, zero), e.b.fcmp_ordered("<", remainder, zero))
    wrong = e.b.and_(e.b.fcmp_ordered("!=", remainder, zero), other)
    quotient = e.b.select(wrong, e.b.fsub(quotient, one), quotient)
    floor = e.intrinsic("floor", [quotient])
    above = e.b.fcmp_ordered(">", e.b.fsub(quotient, floor), ir.Constant(a.type, 0.5))
    floor = e.b.select(above, e.b.fadd(floor, one), floor)
    signed = e.intrinsic("copysign", [zero, e.b.fdiv(a, b)])
    is_zero = e.b.fcmp_ordered("==", quotient, zero)
    return e.b.select(is_zero, signed, floor)


@function("float.floordiv")
def _float_floordiv(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.fail_if(e.b.fcmp_ordered("==", args[1], f64(0)), op.site)
    return float_floordiv(e, *args)


@function("float.pow")
def _float_pow(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """C's pow; the failure where Python raises, or gives a complex number."""
    base, power = args
    if isinstance(power, ir.Constant) and power.constant == 2:
        result = e.b.fmul(base, base)
    else:
        result = e.call("pow", F64, args)
        zero = e.b.fcmp_ordered("==", base, f64(0))
        e.fail_if(e.b.and_(zero, e.b.fcmp_ordered("<", power, f64(0))), op.site)
    return _finite_from(e, result, args, op.site)


def _finite_from(e: Emit, result: ir.Value, args: list[ir.Value], site: int) -> ir.Value:
    """The result; the failure where it is inf or nan though no operand is."""
    with e.unlikely(e.b.not_(_is_finite(e, result))):
        given = e.b.and_(_is_finite(e, args[0]), _is_finite(e, args[1]))
        e.fail_if(given, site)
    return result


def _is_finite(e: Emit, value: ir.Value) -> ir.Value:
    return e.b.fcmp_ordered("<", e.intrinsic("fabs", [value]), f64(float("inf")))


@function("float.neg")
def _float_neg(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.fneg(args[0])


@function("float.abs")
def _float_abs(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.intrinsic("fabs", args)


@function(*(f"float.{name}" for name in SIGNS))
def _float_compare(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    name = op.fn[6:]
    compare = e.b.fcmp_unordered if name == "ne" else e.b.fcmp_ordered
    return compare(SIGNS[name], *args)


# -- int or float, which only a run tells ----------------------------------------------------------
@function("number.of")
def _number_of(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """An int or a float as either."""
    if op.kinds[0] == NUMBER:
        return args[0]
    if op.kinds[0] == FLOAT:
        return struct(e.b, [args[0], ir.Constant(I1, 0)])
    return struct(e.b, [_exact(e, args[0], op.site), ir.Constant(I1, 1)])


@function("number.float")
def _number_float(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.extract_value(args[0], 0)


@function("number.add", "number.sub", "number.mul")
def _number_arithmetic(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """It is an int where both are; then it must be exact."""
    a, b = (e.b.extract_value(v, 0) for v in args)
    ints = e.b.and_(*(e.b.extract_value(v, 1) for v in args))
    result = {"add": e.b.fadd, "sub": e.b.fsub, "mul": e.b.fmul}[op.fn[7:]](a, b)
    large = e.b.fcmp_unordered(">", e.intrinsic("fabs", [result]), f64(EXACT))
    e.fail_if(e.b.and_(ints, large), op.site)
    return struct(e.b, [result, ints])


@function("number.neg", "number.abs")
def _number_sign(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    value, is_int = (e.b.extract_value(args[0], i) for i in (0, 1))
    turned = e.b.fneg(value) if op.fn == "number.neg" else e.intrinsic("fabs", [value])
    turned = e.b.select(is_int, e.b.fadd(turned, f64(0)), turned)  # there is no int -0
    return struct(e.b, [turned, is_int])


@function("select")
def _select(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.select(*args)


@function("int.wrap_index")
def _wrap_index(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(index, length): a negative index counts from the end; the failure beyond either."""
    return wrapped(e, args[0], args[1], op.site)


def wrapped(e: Emit, index: ir.Value, length: ir.Value, site: int) -> ir.Value:
    """An index from 0 on for one that may be negative; the failure where it is outside."""
    negative = e.b.icmp_signed("<", index, i64(0))
    found = e.b.select(negative, e.b.add(index, length), index)
    e.fail_if(e.b.icmp_unsigned(">=", found, length), site)
    return found


@function("int.clamp")
def _clamp(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(bound, length, lowest, highest): a bound of a slice as `slice.indices` has it."""
    bound, length, lowest, highest = args
    negative = e.b.icmp_signed("<", bound, i64(0))
    bound = e.b.select(negative, e.b.add(bound, length), bound)
    bound = e.b.select(e.b.icmp_signed("<", bound, lowest), lowest, bound)
    return e.b.select(e.b.icmp_signed(">", bound, highest), highest, bound)


@function("int.range_length")
def _range_length(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(start, stop, step): the length of a range; the failure for a step of 0."""
    start, stop, step = args
    if not isinstance(step, ir.Constant):
        e.fail_if(e.b.icmp_signed("==", step, i64(0)), op.site)
    up = e.b.icmp_signed(">", step, i64(0))
    span = e.b.select(up, e.b.sub(stop, start), e.b.sub(start, stop))
    size = e.b.select(up, step, e.b.neg(step))
    ahead = e.b.select(up, e.b.icmp_signed("<", start, stop), e.b.icmp_signed(">", start, stop))
    count = e.b.add(e.b.udiv(e.b.sub(span, i64(1)), size), i64(1))
    return e.b.select(ahead, count, i64(0))


KINDS = {INT: "int", FLOAT: "float", NUMBER: "number"}
