"""Products of half floats by the kernels that there are for float32."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dtype_of

_MATRIX, _TAPS = sample(32, 5, dtype="f2"), sample(4, 3, 3, 3, dtype="f2")


@rule(
    "contract",
    "conv",
    example=[
        case(lambda b, x: b.contract(x, b.const(_MATRIX), spec="mk,kn->mn"), x="[B, 32] f16"),
        case(
            lambda b, x: b.conv(
                x, b.const(_TAPS), strides=(1, 1), dilations=(1, 1), pads=(0,) * 4, groups=1
            ),
            x="[1, 3, 8, 8] f16",
        ),
    ],
    near_miss=case(
        lambda b, x: b.contract(x, b.const(_MATRIX.astype(np.float32)), spec="mk,kn->mn"),
        x="[B, 32] f32",
    ),
    tolerance=2e-3,
)
def half_products(b: Rewriter, op: Operation) -> Value | None:
    """Sums are of float32 in any case. Constants are widened once; other operands cost a conversion
    of each element, where plain loops would convert them for each product. What is multiplied as
    halves has `half_factors` before it."""
    if {dtype_of(v).name for v in op.operands} != {"f16"} or attrs_of(op).accumulate:
        return None
    result = dtype_of(op.results[0]).name
    product: Value = b.like(op, [b.cast(v, to="f32") for v in op.operands], accumulate="")
    return product if result == "f32" else b.cast(product, to=result)
