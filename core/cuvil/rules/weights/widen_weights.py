"""Weights that stand as codes, where the product is of floats."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import is_constant, name_of, users
from cuvil.rules.canonicalize._folding import as_recipe, is_weights_of_codes

_CODES = (np.arange(32 * 40).reshape(32, 40) % 255 - 127).astype(np.int8)


def _product(b: Rewriter, x: Value) -> Value:
    weights = b.dequantize_linear(b.const(_CODES), b.scalar(0.25, "f32"))
    result: Value = b.contract(x, weights, spec="mk,kn->mn")
    return result


@rule(
    "dequantize_linear",
    example=case(_product, x="[B, 32] f32"),
    near_miss=case(lambda b, x: b.dequantize_linear(x, b.scalar(0.25, "f32")), x="[4, 32] i8"),
)
def widen_weights(b: Rewriter, op: Operation) -> Value | None:
    """Floats are made of them once, with the other weights, and not in every run."""
    products = ("contract", "conv", "conv_transpose")
    known = is_weights_of_codes(op) and all(map(is_constant, op.operands))
    if not known or not any(name_of(user) in products for user in users(op.results[0])):
        return None
    return as_recipe(b, op)
