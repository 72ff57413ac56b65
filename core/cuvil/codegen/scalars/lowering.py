"""`emit`: a row of the scalar table as LLVM IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir

from cuvil.codegen.scalars.convert import load_convert, store_convert
from cuvil.codegen.scalars.math_builder import MathBuilder, lanes_of, like
from cuvil.codegen.scalars.registry import find_emitter
from cuvil.ir.dtypes import DType
from cuvil.ir.dtypes import dtype as dtype_of
from cuvil.ops.scalar_expansions import Namespace
from cuvil.ops.scalars import Scalar, scalar

__all__ = ["emit"]


def emit(
    name: str,
    builder: ir.IRBuilder,
    args: Sequence[ir.Value],
    dtype: DType | str,
    attrs: Mapping[str, Any] | None = None,
    facts: object = None,
) -> ir.Value:
    """Code for scalar function `name` on operands of element type `dtype`.

    Operands are scalars or vectors of one lane count: i1 for bool, integers, float, double. f16
    and bf16 operands are their bits (i16), and so is the result where it is of that type; given
    as float instead (see `load_convert`), they stay float, and rounding is left to the store.
    Operands of narrow types are their bits (i8). A cast to such a type always gives bits.
    `facts` may have the attributes `fma`, `rounding` (floor, ceil, rint, trunc) and `half` (f16
    conversion), true where the target has instructions for them; missing ones count as false.
    The code is branch-free (but for float mod and fmod), never traps and calls nothing outside
    the module. Raises KeyError for an unknown name or attribute, TypeError for operands the row
    does not take.
    """
    row, kind = scalar(name), dtype_of(dtype)
    if len(args) != row.arity or not row.supports(kind):
        raise TypeError(f"scalar {name} does not take {len(args)} operand(s) of {kind}")
    m = MathBuilder(builder, kind.compute, lanes_of(args[-1]), facts)
    stored = [kind.compute is not kind and _is_bits(value, kind) for value in args]
    if row.moves and all(stored[row.conditional :]):
        m = m.at(dtype_of(f"u{kind.bits}"))
        return _emit(m, row, args, row.attributes(attrs))
    values = [
        load_convert(builder, value, kind, facts) if bits else value
        for value, bits in zip(args, stored, strict=True)
    ]
    result = _emit(m, row, values, row.attributes(attrs))
    back = row.result == "same" and stored[-1]
    return store_convert(builder, result, kind, facts) if back else result


def _is_bits(value: ir.Value, kind: DType) -> bool:
    return bool(value.type == like(value, ir.IntType(kind.bits)))


def _emit(m: MathBuilder, row: Scalar, values: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    emitter = find_emitter(row.name, m.dtype.kind)
    if emitter is not None:
        return emitter(m, *values, **attrs)
    if row.expansion is None:
        raise TypeError(f"scalar {row.name} has no code for {m.dtype}")
    return row.expansion(_Emitting(m), *values, **attrs)


class _Emitting(Namespace):
    """Evaluates expansions by emitting code."""

    def __init__(self, m: MathBuilder) -> None:
        self._m = m

    def apply(self, name: str, *args: Any, **attrs: Any) -> Any:
        row = scalar(name)
        return _emit(self._m, row, [self._m.value(a) for a in args], row.attributes(attrs))
