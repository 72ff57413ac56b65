"""erf: a ratio of polynomials in single precision, two regions in double."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.scalars.exponential import double_angle, exp_clamped
from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.codegen.scalars.registry import emitter
from cuvil.ops.scalar_erf import ERF_CENTRE, ERF_LIMIT, ERF_SMALL, ERF_TAIL

# erf(x) as `double_angle` has it; at the limit it has rounded to 1. Minimax fit for |x| <= 3.925,
# all terms positive, relative error 2^-24.8.
_LIMIT = 4.0
_SLOPE = 1.1283792059098278
_P = (0.2973859996767516, 0.032280518946947514, 0.0025406876866731475)
_Q = (0.5571522536116461, 0.09690866036576594, 0.012097148776155794, 0.0001978401773275441)


@emitter("erf")
def _erf(m: MathBuilder, x: ir.Value) -> ir.Value:
    if m.is_double:
        return _erf_double(m, x)
    size = m.at_most(m.abs(x), _LIMIT)
    return m.copysign(double_angle(m, size, _SLOPE, _P, _Q), x)


def _erf_double(m: MathBuilder, x: ir.Value) -> ir.Value:
    size = m.at_most(m.abs(x), ERF_LIMIT)
    z = m.mul(size, size)
    small = m.mul(x, m.polynomial(z, ERF_SMALL))
    ratio = m.div(m.sub(size, ERF_CENTRE), m.add(size, ERF_CENTRE))
    gauss = exp_clamped(m, m.neg(z), 0.0)
    tail = m.fma(m.neg(gauss), m.polynomial(ratio, ERF_TAIL), 1.0)
    return m.select(m.compare("gt", size, 1.0), m.copysign(tail, x), small)
