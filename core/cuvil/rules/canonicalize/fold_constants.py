"""Ops on constants only."""

from __future__ import annotations

from math import prod

import numpy as np

from cuvil.ir.attrs import Attrs
from cuvil.ir.build import INLINE_LIMIT
from cuvil.ir.dims import SymDim
from cuvil.ir.names import Operation, Value
from cuvil.ir.record import Primitive, of
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import (
    attrs_of,
    is_constant,
    tensor_type,
)
from cuvil.rules.canonicalize._folding import DATA_ERRORS, as_recipe, evaluated, is_weights_of_codes

_FREE_BYTES = 1 << 16  # a result of so many bytes may be larger than its operands
_MOST_MULTIPLICATIONS = 1 << 30  # some seconds of numpy: whole networks of constants exceed it


@rule(
    "*",
    example=[
        case(lambda b, x: b.add(x, b.sqrt(b.const(np.array([1, 4, 9], "f4")))), x="[3] f32"),
        case(lambda b, x: b.add(x, b.transpose(b.const(sample(7, 5)), perm=(1, 0))), x="[7] f32"),
    ],
    near_miss=[
        case(
            lambda b, x: b.add(x, b.broadcast(b.const(sample(1024)), dims=(512, 1024))),
            x="[512, 1024] f32",
        ),
        case(
            lambda b, x: b.add(x, b.contract(*[b.const(sample(1024, 1025))] * 2, spec="mk,nk->mn")),
            x="[1024, 1024] f32",
        ),
    ],
)
def fold_constants(b: Rewriter, op: Operation) -> Value | None:
    """An op on constants is a constant: computed at once if small, else a recipe of the pool.

    Not where the result is larger than what it is made of, as with a broadcast, nor where it takes
    so long to compute that a compile would seem to hang: that is left to the run.
    """
    record = of(op)
    if record.evaluate is None or not all(map(is_constant, op.operands)):
        return None
    out, attrs = tensor_type(op.results[0]), attrs_of(op)
    if len(op.results) != 1 or not record.pure or not out.is_static or _symbolic(attrs):
        return None
    if out.dtype.is_string:  # its bytes have no place in the pool
        return None
    assert isinstance(out.size, int)
    if out.size <= INLINE_LIMIT:  # not worth a product of bytes
        arrays = [b.array(v) for v in op.operands]
        if any(a is None for a in arrays):
            return None
        try:
            return b.const(evaluated(record, arrays, attrs))
        except DATA_ERRORS:
            return None  # an index outside, say: an error where the run gets there
    if _multiplications(record, attrs, op) > _MOST_MULTIPLICATIONS:
        return None
    sources = [b.pool_constant(v) for v in op.operands]
    nbytes = out.size * out.dtype.size
    if nbytes > max(_FREE_BYTES, 2 * sum(s.nbytes for s in sources if s)):
        return None
    if any(s is None for s in sources) or is_weights_of_codes(op):
        return None
    if "opaque" in record.tags:
        return _at_once(b, record, attrs, op)
    return as_recipe(b, op)


def _at_once(b: Rewriter, record: Primitive, attrs: Attrs, op: Operation) -> Value | None:
    """Of a custom operator, whose meaning may fail: then a run fails, if it gets there."""
    try:
        return b.const(evaluated(record, [b.array(v) for v in op.operands], attrs))
    except DATA_ERRORS:
        return None


def _symbolic(attrs: Attrs) -> bool:
    return any(
        isinstance(x, SymDim) for v in vars(attrs).values() if isinstance(v, tuple) for x in v
    )


def _multiplications(record: Primitive, attrs: Attrs, op: Operation) -> int:
    """Those of a product or a convolution; 0 for others, which take as long as they are large."""
    types = [tensor_type(v) for v in (*op.operands, *op.results)]
    if record.name == "contract":
        spec = parse(attrs.spec)
        letters = [
            pair for s, t in zip(spec, types, strict=True) for pair in zip(s, t.dims, strict=True)
        ]
        return prod(int(str(d)) for d in dict(letters).values())
    if record.name in ("conv", "conv_transpose"):
        x, w, *_, out = types
        places = out.size if record.name == "conv" else x.size
        return int(str(places)) * int(str(w.size)) // max(1, int(str(w.dims[0])))
    return 0
