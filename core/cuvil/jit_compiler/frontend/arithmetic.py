"""Operators on numbers: which types they give, as in Python and numpy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    NUMBER,
    Element,
    Scalar,
    Type,
    dtype_char,
    is_number,
    numeric_join,
)
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Val

ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITWISE = ("and", "or", "xor", "lshift", "rshift")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name + "_" if name in ("and", "or") else name)
    for name in (*ARITHMETIC, *BITWISE, *COMPARISONS)
}
_MESSAGES = {
    "truediv": ("ZeroDivisionError", "division by zero"),
    "floordiv": ("ZeroDivisionError", "integer division or modulo by zero"),
    "mod": ("ZeroDivisionError", "integer modulo by zero"),
    "pow": ("OverflowError", "a power that 64 bits do not hold, or that Python has no float for"),
}


def failure(t: Translator, fn: str) -> int:
    """The site of an operator: division by zero, or an int that 64 bits do not hold."""
    default = ("OverflowError", "an int that 64 bits do not hold: cuvil.jit's ints have 64")
    return t.site(*_MESSAGES.get(fn, default))


def fold(t: Translator, fn: str, a: Val, b: Val) -> Val | None:
    """The result on two literals, None where it must be computed."""
    if not (a.is_literal and b.is_literal) or fn not in _FOLD:
        return None
    if fn in ("pow", "lshift") and not (isinstance(b.literal, int) and abs(b.literal) < 64):
        return None
    try:
        value = _FOLD[fn](a.literal, b.literal)
    except (ArithmeticError, TypeError, ValueError):
        return None
    plain = type(value) in (bool, float) or (type(value) is int and abs(value) < 1 << 62)
    return t.literal(value) if plain else None


def numbers(t: Translator, fn: str, a: Val, b: Val) -> Val:
    """An operator or comparison on two numbers."""
    folded = fold(t, fn, a, b)
    if folded is not None:
        return folded
    left, right = t.resolve(a.kind), t.resolve(b.kind)
    if isinstance(left, Scalar) or isinstance(right, Scalar):
        return scalars(t, fn, a, b)
    if left == BOOL and right == BOOL and fn in ("and", "or", "xor"):
        return t.apply(f"bool.{fn}", [a, b], BOOL)
    a, b = (t.convert(v, INT) if t.resolve(v.kind) == BOOL else v for v in (a, b))
    kinds = {t.resolve(a.kind), t.resolve(b.kind)}
    if fn in COMPARISONS:
        return _compare(t, fn, a, b, kinds)
    if kinds == {INT}:
        result = FLOAT if fn == "truediv" else INT
        return t.apply(f"int.{fn}", [a, b], result, failure(t, fn))
    if fn in BITWISE:
        raise t.refusal(f"'{fn}' of floats")
    if NUMBER in kinds and FLOAT not in kinds:
        if fn not in ("add", "sub", "mul"):
            if fn != "truediv":
                raise t.refusal(f"'{fn}' of what is an int or a float")
            return t.apply("float.truediv", [t.to_float(a), t.to_float(b)], FLOAT, failure(t, fn))
        both = [t.convert(v, NUMBER) for v in (a, b)]
        return t.apply(f"number.{fn}", both, NUMBER, failure(t, fn))
    return _floats(t, fn, t.to_float(a), t.to_float(b))


def _floats(t: Translator, fn: str, a: Val, b: Val) -> Val:
    message = {"floordiv": "float floor division by zero", "mod": "float modulo by zero",
               "truediv": "float division by zero"}.get(fn)  # fmt: skip
    site = t.site("ZeroDivisionError", message) if message else failure(t, fn)
    return t.apply(f"float.{fn}", [a, b], FLOAT, site)


def _compare(t: Translator, fn: str, a: Val, b: Val, kinds: set[Type]) -> Val:
    if kinds == {INT}:
        return t.apply(f"int.{fn}", [a, b], BOOL)
    site = t.site("OverflowError", "an int beyond 2**53 beside a float")
    sides = [
        t.apply("float.exact", [v], FLOAT, site)
        if t.resolve(v.kind) == INT and not v.is_literal
        else t.to_float(v)
        for v in (a, b)
    ]
    return t.apply(f"float.{fn}", sides, BOOL)


def scalars(t: Translator, fn: str, a: Val, b: Val) -> Val:
    """An operator where at least one side is a numpy scalar."""
    common = common_scalar(t, fn, a, b)
    check_power(t, fn, common, b)
    sides = [t.convert(v, common) for v in (a, b)]
    if b.is_literal and fn == "pow":
        sides[1] = Val(common, t.builder.constant(b.literal, common), b.literal)
    if isinstance(common, Element):
        result: Scalar = Element("?" if fn in COMPARISONS else common.dtype, fresh=True)
    else:
        result = Scalar("?") if fn in COMPARISONS else common
    return t.apply(f"scalar.{fn}", sides, result)


def check_power(t: Translator, fn: str, common: Scalar, exponent: Val) -> None:
    """Integer powers are for small literal exponents."""
    is_int = np.dtype(common.dtype).kind != "f"
    if fn == "pow" and is_int and exponent.literal not in (0, 1, 2, 3, 4):
        raise t.refusal("an integer power of numpy's by something but 0 to 4")


def common_scalar(t: Translator, fn: str, a: Val, b: Val) -> Scalar:
    """The element type in which numpy computes an operator."""
    kinds = [t.resolve(v.kind) for v in (a, b)]
    common = numeric_join(kinds)
    if not isinstance(common, Scalar):
        raise t.refusal(f"'{fn}' of {kinds[0]} and {kinds[1]}")
    check_range(t, common, (a, b))
    return operand_type(t, fn, common)


def operand_type(t: Translator, fn: str, common: Scalar) -> Scalar:
    """The type that operands get before an operator, given what they join to."""
    kind = np.dtype(common.dtype).kind
    if isinstance(common, Element) and kind != "f":
        return _element_operand(t, fn, common)
    if fn == "truediv" and kind != "f":
        found = np.true_divide(np.ones(1, common.dtype), np.ones(1, common.dtype)).dtype
        if found.char == "e":
            raise t.refusal("a quotient of 8-bit integers, in half precision")
        return Scalar(dtype_char(found))
    if kind == "b" and fn in ("sub", "floordiv", "mod", "pow", "lshift", "rshift"):
        raise t.refusal(f"'{fn}' of numpy's bools")
    if kind == "f" and fn in BITWISE:
        raise t.refusal(f"'{fn}' of floats")
    if fn in ("lshift", "rshift"):
        raise t.refusal("shifts of numpy's integers")
    return common


def _element_operand(t: Translator, fn: str, common: Element) -> Scalar:
    """Of torch's bools and integers: quotients are of the default type; division by 0 raises."""
    if fn == "truediv":
        return Element("f")
    if fn in ("floordiv", "mod", "pow", "lshift", "rshift"):
        raise t.refusal(f"'{fn}' of {common}")
    if common.dtype == "?" and fn not in (*COMPARISONS, *BITWISE):
        raise t.refusal(f"'{fn}' of {common}")
    return common


def check_range(t: Translator, common: Scalar, values: tuple[Val, ...]) -> None:
    """A literal beside a numpy integer must fit it, as numpy has it."""
    dtype = np.dtype(common.dtype)
    for value in values:
        if value.is_literal and type(value.literal) is int and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= value.literal <= limits.max:
                raise t.refusal(f"{value.literal} beside {common}, which does not hold it")


def negate(t: Translator, value: Val) -> Val:
    """-x"""
    kind = t.resolve(value.kind)
    if value.is_literal and type(value.literal) in (int, float):
        return t.literal(-value.literal)
    if kind == BOOL:
        value, kind = t.convert(value, INT), INT
    if isinstance(kind, Scalar):
        if kind.dtype == "?":
            raise t.refusal("minus of numpy's bool")
        return t.apply("scalar.neg", [value], made_now(kind))
    if not is_number(kind):
        raise t.refusal(f"minus of {kind}")
    site = failure(t, "neg") if kind == INT else None
    return t.apply(f"{family(kind)}.neg", [value], kind, site)


def made_now(kind: Type) -> Type:
    """The type of a result that nobody else holds."""
    return replace(kind, fresh=True) if isinstance(kind, Element) else kind


def absolute(t: Translator, value: Val) -> Val:
    """abs(x)"""
    kind = t.resolve(value.kind)
    if kind == BOOL:
        value, kind = t.convert(value, INT), INT
    if isinstance(kind, Scalar):
        return t.apply("scalar.abs", [value], made_now(kind))
    if not is_number(kind):
        raise t.refusal(f"abs of {kind}")
    return t.apply(f"{family(kind)}.abs", [value], kind, failure(t, "neg"))


def family(kind: Type) -> str:
    """The first part of the names of a plain number's functions."""
    return {INT: "int", FLOAT: "float", NUMBER: "number", BOOL: "bool"}[kind]


def truth(t: Translator, value: Val) -> Val:
    """bool(x) of a number."""
    kind = t.resolve(value.kind)
    if value.is_literal:
        return t.literal(bool(value.literal))
    if kind == BOOL:
        return value
    if kind == NUMBER:
        return t.apply("bool.of_float", [t.to_float(value)], BOOL)
    if isinstance(kind, Scalar):
        if kind.dtype == "?":
            return t.apply("scalar.cast", [value], BOOL)
        is_float = np.dtype(kind.dtype).kind == "f"
        return t.apply(f"bool.of_{'float' if is_float else 'int'}", [value], BOOL)
    return t.apply(f"bool.of_{family(kind)}", [value], BOOL)
