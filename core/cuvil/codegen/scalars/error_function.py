"""erf: a ratio of polynomials in single precision, two regions in double."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.scalars.exponential import double_angle, exp_clamped
from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.codegen.scalars.registry import emitter
from cuvil.ops.scalar_erf import ERF_CENTRE, ERF_LIMIT, ERF_SMALL, ERF_TAIL

# erf(x) = 2 v / (1 + v*v) with v = x * p(x*x) / q(x*x) on |x| <= 3.925, from where erf rounds to 1;
# all terms positive, relative error 2^-24.8 of the whole.
_LIMIT = 3.925
_P = (0.5641896029549391, 0.1486929998383758, 0.016140259473499757, 0.0012703438673365738)
_Q = (
    1.0,
    0.27857612680582305,
    0.04845430118288297,
    0.006048574388077897,
    9.892008866377204e-05,
)


@emitter("erf")
def _erf(m: MathBuilder, x: ir.Value) -> ir.Value:
    if m.is_double:
        return _erf_double(m, x)
    return double_angle(m, m.clamp(x, -_LIMIT, _LIMIT), _P, _Q)


def _erf_double(m: MathBuilder, x: ir.Value) -> ir.Value:
    size = m.at_most(m.abs(x), ERF_LIMIT)
    z = m.mul(size, size)
    small = m.mul(x, m.polynomial(z, ERF_SMALL))
    ratio = m.div(m.sub(size, ERF_CENTRE), m.add(size, ERF_CENTRE))
    gauss = exp_clamped(m, m.neg(z), 0.0)
    tail = m.fma(m.neg(gauss), m.polynomial(ratio, ERF_TAIL), 1.0)
    return m.select(m.compare("gt", size, 1.0), m.copysign(tail, x), small)
