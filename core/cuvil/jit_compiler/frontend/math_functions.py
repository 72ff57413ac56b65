"""The math module's functions, of numbers as floats."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    is_number,
)
from cuvil.jit_compiler.frontend.calls import BUILTINS, Builtin, positional
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Val

_ONE = (
    "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sqrt",
)  # fmt: skip
_TWO = ("atan2", "hypot", "fmod", "copysign", "pow")
_TESTS = ("isnan", "isinf", "isfinite")


def _floats_of(t: Translator, values: Sequence[Val]) -> list[Val]:
    for value in values:
        if not is_number(t.resolve(value.kind)):
            raise t.refusal(f"{t.resolve(value.kind)} in a function of the math module")
    return [t.to_float(v) for v in values]


def _math_call(name: str, count: int) -> Builtin:
    def call(t: Translator, node: ast.Call) -> Expression:
        args = _floats_of(t, positional(t, node, count, count))
        if name in _TESTS:
            return t.apply(f"float.{name}", args, BOOL)
        return t.apply(f"float.{name}", args, FLOAT, t.site("ValueError", "math domain error"))

    return call


def _math_fabs(t: Translator, node: ast.Call) -> Expression:
    return t.apply("float.abs", _floats_of(t, positional(t, node, 1, 1)), FLOAT)


def _math_to_int(name: str) -> Builtin:
    def call(t: Translator, node: ast.Call) -> Expression:
        (value,) = positional(t, node, 1, 1)
        if t.resolve(value.kind) in (INT, BOOL):
            return t.convert(value, INT)
        (value,) = _floats_of(t, [value])
        near = t.apply(f"float.{name}", [value], FLOAT)
        site = t.site("OverflowError", "a float that 64 bits do not hold as an int")
        return t.apply("int.of_float", [near], INT, site)

    return call


BUILTINS.update({getattr(math, name): _math_call(name, 1) for name in (*_ONE, *_TESTS)})
BUILTINS.update({getattr(math, name): _math_call(name, 2) for name in _TWO})
BUILTINS.update({getattr(math, n): _math_to_int(n) for n in ("floor", "ceil", "trunc")})
BUILTINS[math.fabs] = _math_fabs
