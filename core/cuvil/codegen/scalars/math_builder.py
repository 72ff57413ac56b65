"""The vocabulary scalar emitters are written in: IRBuilder on one float or integer type.

Everything works on scalars and on vectors alike, and lowers to instructions of a baseline target:
no call is left for a library to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir

from cuvil.codegen.llvm_util import F32, F64, declare, mangled, vector
from cuvil.ir.dtypes import DType

__all__ = ["MathBuilder", "Operand", "fact", "lanes_of", "like"]

Operand: TypeAlias = Any  # an ir.Value, or a Python number for a constant

_CONTRACT = ("contract",)
SQUARE_ROOT = "cuvil_sqrt_bits"  # a function of the runtime's, by width
_SIGNED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def fact(facts: object, name: str) -> bool:
    """Whether the target has what `name` says: fma, rounding, half, scalar. Absent means no."""
    return bool(getattr(facts, name, False))


def lanes_of(value: ir.Value) -> int:
    """Lanes of a vector value, 1 for a scalar."""
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def like(value: ir.Value, element: ir.Type) -> ir.Type:
    """`element` in the shape of `value`: a vector of as many lanes, or itself."""
    return vector(element, lanes_of(value))


class _Splat(ir.Constant):
    """A vector constant with one number in every lane, in the short form of LLVM's text."""

    def _get_reference(self) -> str:
        return f"splat ({self.constant[0]})"


class MathBuilder:
    """Arithmetic on values of one element type and lane count.

    `dtype` is the element type computed in (never f16 or bf16), `type` its IR type, `bits_type`
    the integer of the same width. Operands may be Python numbers. Float `add`, `sub`, `mul` allow
    contraction to fused operations; the `exact_` forms do not.
    """

    def __init__(self, builder: ir.IRBuilder, dtype: DType, lanes: int, facts: object) -> None:
        self.b = builder
        self.dtype = dtype
        self.lanes = lanes
        self.facts = facts
        self.width = 1 if dtype.kind == "bool" else dtype.bits
        element = {"f32": F32, "f64": F64}.get(dtype.name) or ir.IntType(self.width)
        self.type = vector(element, lanes)
        self.bits_type = vector(ir.IntType(self.width), lanes)
        self.is_float = dtype.is_float
        self.is_double = dtype.name == "f64"
        # Floats for which a cpu without vectors has no instructions.
        self.is_soft = fact(facts, "scalar") and self.width > getattr(facts, "float_bits", 64)

    def at(self, dtype: DType) -> MathBuilder:
        """The same builder on another element type."""
        return MathBuilder(self.b, dtype, self.lanes, self.facts)

    def constant(self, value: float, kind: ir.Type | None = None) -> ir.Constant:
        """A number in every lane, rounded to the element type."""
        kind = kind or self.type
        element = kind.element if isinstance(kind, ir.VectorType) else kind
        if isinstance(element, ir.FloatType):
            value = float(np.float32(value))
        number = ir.Constant(element, value)
        if not isinstance(kind, ir.VectorType):
            return number
        return _Splat(kind, number)

    def value(self, operand: Operand) -> ir.Value:
        """An operand as an IR value; numbers become constants."""
        return operand if isinstance(operand, ir.Value) else self.constant(operand)

    def bits_value(self, operand: Operand) -> ir.Value:
        """Like `value`, in the integer type of the same width."""
        if isinstance(operand, ir.Value):
            return operand
        return self.constant(operand, self.bits_type)

    # Arithmetic of the element type.

    def add(self, a: Operand, b: Operand) -> ir.Value:
        a, b = self.value(a), self.value(b)
        return self.b.fadd(a, b, flags=_CONTRACT) if self.is_float else self.b.add(a, b)

    def sub(self, a: Operand, b: Operand) -> ir.Value:
        a, b = self.value(a), self.value(b)
        return self.b.fsub(a, b, flags=_CONTRACT) if self.is_float else self.b.sub(a, b)

    def mul(self, a: Operand, b: Operand) -> ir.Value:
        a, b = self.value(a), self.value(b)
        return self.b.fmul(a, b, flags=_CONTRACT) if self.is_float else self.b.mul(a, b)

    def div(self, a: Operand, b: Operand) -> ir.Value:
        return self.b.fdiv(self.value(a), self.value(b))

    def exact_add(self, a: Operand, b: Operand) -> ir.Value:
        return self.b.fadd(self.value(a), self.value(b))

    def exact_sub(self, a: Operand, b: Operand) -> ir.Value:
        return self.b.fsub(self.value(a), self.value(b))

    def exact_mul(self, a: Operand, b: Operand) -> ir.Value:
        return self.b.fmul(self.value(a), self.value(b))

    def fma(self, a: Operand, b: Operand, c: Operand) -> ir.Value:
        """a * b + c, fused where the target can."""
        if fact(self.facts, "fma") and not self.is_soft:
            return self.intrinsic("fma", a, b, c)
        return self.add(self.mul(a, b), c)

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """Horner's rule, constant term first."""
        value: Operand = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            value = self.fma(value, x, coefficient)
        return self.value(value)

    def neg(self, a: Operand) -> ir.Value:
        return self.b.fneg(self.value(a)) if self.is_float else self.b.sub(self.value(0), a)

    def abs(self, a: Operand) -> ir.Value:
        """|a| of a float."""
        return self.intrinsic("fabs", a)

    def copysign(self, size: Operand, sign: Operand) -> ir.Value:
        """|size| with the sign bit of `sign`."""
        return self.intrinsic("copysign", size, sign)

    def sqrt(self, a: Operand) -> ir.Value:
        if not self.is_soft:
            return self.intrinsic("sqrt", a)
        root = declare(
            self.b.module, f"{SQUARE_ROOT}{self.width}", self.bits_type, [self.bits_type]
        )
        return self.from_bits(self.b.call(root, [self.bits(a)]))

    # Choice.

    def compare(self, relation: str, a: Operand, b: Operand) -> ir.Value:
        """lt le gt ge eq ne as IEEE and numpy have them: with a NaN only `ne` is true."""
        a, b, sign = self.value(a), self.value(b), _SIGNED[relation]
        if self.is_float:
            compare = self.b.fcmp_unordered if relation == "ne" else self.b.fcmp_ordered
            return compare(sign, a, b)
        compare = self.b.icmp_signed if self.dtype.kind == "int" else self.b.icmp_unsigned
        return compare(sign, a, b)

    def is_nan(self, a: Operand) -> ir.Value:
        return self.b.fcmp_unordered("uno", self.value(a), self.value(a))

    def select(self, condition: ir.Value, a: Operand, b: Operand) -> ir.Value:
        return self.b.select(condition, self.value(a), self.value(b))

    def at_most(self, a: ir.Value, limit: float) -> ir.Value:
        """min(a, limit); NaN stays NaN. One instruction on most targets."""
        return self.select(self.compare("gt", a, limit), limit, a)

    def at_least(self, a: ir.Value, limit: float) -> ir.Value:
        """max(a, limit); NaN stays NaN."""
        return self.select(self.compare("lt", a, limit), limit, a)

    def clamp(self, a: ir.Value, low: float, high: float) -> ir.Value:
        """`a` held within [low, high]; NaN stays NaN."""
        return self.at_most(self.at_least(a, low), high)

    # Bits.

    def bits(self, a: Operand) -> ir.Value:
        """The bit pattern of a float as an integer."""
        return self.b.bitcast(self.value(a), self.bits_type)

    def from_bits(self, a: ir.Value) -> ir.Value:
        """The float of a bit pattern."""
        return self.b.bitcast(a, self.type)

    def shl(self, a: ir.Value, amount: int) -> ir.Value:
        return self.b.shl(a, self.bits_value(amount))

    def intrinsic(self, name: str, *args: Operand, flags: tuple[str, ...] = ()) -> ir.Value:
        """llvm.NAME on the element type; only names that lower to instructions."""
        function = declare(
            self.b.module, f"llvm.{name}.{mangled(self.type)}", self.type, [self.type] * len(args)
        )
        return self.b.call(function, [self.value(a) for a in args], fastmath=flags)

    def extremum(self, name: str, a: Operand, b: Operand) -> ir.Value:
        """llvm.minimum or llvm.maximum: NaN for a NaN, either zero for two zeros.

        LLVM vectorises reductions by these, not by comparisons and selects; without vectors it may
        call functions for them.
        """
        if fact(self.facts, "scalar"):
            a, b = self.value(a), self.value(b)
            first = self.b.fcmp_unordered("<" if name == "minimum" else ">", a, b)
            return self.select(self.is_nan(b), b, self.select(first, a, b))
        return self.intrinsic(name, a, b, flags=("nsz",))
