"""e**x for what lies below a maximum: the results are weights of a sum that is at least 1."""

import math

from llvmlite import ir

from cuvil.codegen.scalars.math_builder import MathBuilder

# 2**r = 1 + r*p(r) on |r| <= 1/2, minimax, relative error 2^-23.4.
_P = (
    0.6931469775989211,
    0.24022242085050602,
    0.05550733743508854,
    0.009671512660910073,
    0.0013264727170030806,
)
_MAGIC = 1.5 * 2**23 + 127  # puts n + bias, rounded, into the last places of a float
_LEAST = -88.0  # its power of two has the exponent of zero


def exp_below(m: MathBuilder, x: ir.Value) -> ir.Value:
    """e**x of f32 x <= 0; 0 from -87.7 down, NaN for NaN.

    x * log2(e) - n is one fused step: its error grows with |x| while the result shrinks faster,
    so it stays below an ulp of 1.
    """
    x = m.at_least(x, _LEAST)
    shifted = m.fma(x, math.log2(math.e), _MAGIC)
    scale = m.from_bits(m.shl(m.bits(shifted), 23))
    n = m.exact_sub(shifted, _MAGIC)
    r = m.fma(x, math.log2(math.e), m.neg(n))
    return m.exact_mul(m.fma(r, m.polynomial(r, _P), 1.0), scale)
