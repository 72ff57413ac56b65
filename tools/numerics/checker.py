"""Results against exact values, many at a time: native code, since every float32 is looked at."""

from __future__ import annotations

import ctypes
import math
from dataclasses import astuple, dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    F32,
    F64,
    I64,
    PTR,
    VOID,
    for_range,
    i64,
    load,
    stack_array,
    store,
    vector,
)
from cuvil.codegen.scalars.array_functions import compile_module
from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.ir.dtypes import dtype

Array = np.ndarray[Any, Any]

__all__ = ["LANES", "Checker", "Found", "Rules"]

LANES = 16
_SUMS = 3  # of the loop, each LANES wide: two errors, and a count of faults
_EMAX = 127  # of float32
_BIAS = 1023


@dataclass(frozen=True)
class Found:
    """What a chunk has shown.

    ulps: the largest error beyond the slack, in units in the last place of float32. scaled: the
    largest error in units of epsilon * max(1, |x|). faults: elements outside the range, with a
    NaN where none belongs or none where one does, or with the wrong sign of an exact zero.
    """

    ulps: float
    scaled: float
    faults: int


@dataclass(frozen=True)
class Rules:
    """What holds for a function: the slack in units of epsilon * max(1, |x|), the range of its
    results, and the |x| beyond which only the range counts."""

    slack: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    far: float = math.inf


class Checker:
    """Compiled for this machine; call it with arrays whose size is a multiple of `LANES`.

    scaled: whether the error in units of epsilon * max(1, |x|) is wanted; else it counts 0.
    """

    def __init__(self, facts: TargetFacts, scaled: bool) -> None:
        parsed, machine = compile_module(_module(scaled), facts.cpu, facts.features, level=3)
        self._engine = llvm.create_mcjit_compiler(parsed, machine)
        self._engine.finalize_object()
        kinds = [*[ctypes.c_void_p] * 4, ctypes.c_int64, *[ctypes.c_double] * 4]
        self._check = ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address("check"))
        self._out = np.zeros((_SUMS, LANES))

    def __call__(self, x: Array, value: Array, exact: Array, rules: Rules) -> Found:
        """`value` (float32) of operands `x` (float32) against `exact` (float64).

        An overflow counts by the distance to 2**128.
        """
        arrays = [self._out, x, value, exact]
        self._check(*[a.ctypes.data for a in arrays], x.size, *astuple(rules))
        ulps, scaled, faults = self._out
        return Found(float(ulps.max()), float(scaled.max()), int(faults.sum()))


def _module(scaled: bool) -> ir.Module:
    module = ir.Module("checker")
    kind = ir.FunctionType(VOID, [PTR] * 4 + [I64] + [F64] * 4)
    function = ir.Function(module, kind, "check")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    m = MathBuilder(b, dtype("f64"), LANES, None)
    sums = stack_array(b, m.type, _SUMS)
    places = [i64(k * LANES) for k in range(_SUMS)]
    out, x, value, exact, size, *numbers = function.args
    for place in places:
        store(b, m.value(0.0), sums, place)
    slack, low, high, far = (_splat(m, n) for n in numbers)
    with for_range(b, i64(0), size, i64(LANES)) as i:
        operand, seen = (b.fpext(load(b, p, i, vector(F32, LANES)), m.type) for p in (x, value))
        real = load(b, exact, i, m.type)
        gap = _gap(m, operand, seen, real, far)
        unit = _unit(m, operand)
        found = (
            m.mul(m.sub(gap, m.mul(slack, unit)), _places(m, real)),
            m.div(gap, unit) if scaled else m.value(0.0),
            _fault(m, seen, real, low, high),
        )
        for place, new, largest in zip(places, found, (True, True, False), strict=True):
            old = load(b, sums, place, m.type)
            more = m.select(m.compare("gt", new, old), new, old) if largest else m.add(old, new)
            store(b, more, sums, place)
    for place in places:
        store(b, load(b, sums, place, m.type), out, place)
    b.ret_void()
    return module


def _splat(m: MathBuilder, number: ir.Value) -> ir.Value:
    first = m.b.insert_element(ir.Constant(m.type, ir.Undefined), number, i64(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return m.b.shuffle_vector(first, first, order)


def _gap(m: MathBuilder, x: ir.Value, seen: ir.Value, real: ir.Value, far: ir.Value) -> ir.Value:
    """|seen - real|, 0 for a NaN and far out."""
    limit = 2.0 ** (_EMAX + 1)
    gap = m.abs(m.sub(m.clamp(seen, -limit, limit), m.clamp(real, -limit, limit)))
    return m.select(m.b.or_(m.is_nan(gap), m.compare("gt", m.abs(x), far)), 0.0, gap)


def _unit(m: MathBuilder, x: ir.Value) -> ir.Value:
    """epsilon * max(1, |x|)."""
    size = m.exact_mul(m.clamp(m.abs(x), 1.0, 2.0 ** (_EMAX + 1)), 2.0**-23)
    return m.select(m.is_nan(x), 1.0, size)


def _places(m: MathBuilder, real: ir.Value) -> ir.Value:
    """How many last places of a float32 make 1: 2**(23 - e), from the biased exponent of 2**e."""
    size = m.clamp(m.abs(real), 2.0**-126, 2.0**_EMAX)
    exponent = m.b.and_(m.bits(m.select(m.is_nan(real), 1.0, size)), m.bits_value(0x7FF << 52))
    return m.from_bits(m.b.sub(m.bits_value((2 * _BIAS + 23) << 52), exponent))


def _fault(
    m: MathBuilder, seen: ir.Value, real: ir.Value, low: ir.Value, high: ir.Value
) -> ir.Value:
    b = m.b
    outside = b.or_(m.compare("lt", seen, low), m.compare("gt", seen, high))
    nan = b.xor(m.is_nan(seen), m.is_nan(real))
    zero = b.and_(m.compare("eq", seen, 0.0), m.compare("eq", real, 0.0))
    signs = m.compare("lt", m.mul(m.copysign(1.0, seen), m.copysign(1.0, real)), 0.0)
    return m.select(b.or_(b.or_(outside, nan), b.and_(zero, signs)), 1.0, 0.0)
