"""Look-ups written as products with one-hot rows."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, is_constant, rank_of


def _product(b: Rewriter, x: Value, first: int) -> Value:
    rows = b.reshape(x, dims=(*b.dims_of(x), 1))
    hot = b.eq(rows, b.const(np.arange(first, first + 20)))
    result: Value = b.contract(b.cast(hot, to="f32"), b.const(sample(20, 4)), spec="bsk,kn->bsn")
    return result


@rule(
    "contract",
    example=case(lambda b, x: _product(b, x, 0), x="[B, S] i64"),
    near_miss=case(lambda b, x: _product(b, x, 1), x="[B, S] i64"),
)
def one_hot_product(b: Rewriter, op: Operation) -> Value | None:
    """cast(x == 0 .. n-1) @ W, with finite W, is row x of W, or a row of zeros added to W."""
    spec = parse(attrs_of(op).spec)
    if len(spec.summed) != 1 or (spec.a[-1:], spec.b[:1]) != (spec.summed, spec.summed):
        return None
    if spec.batch or spec.out != spec.rows + spec.columns or spec.a[:-1] != spec.rows:
        return None
    index = _index(b, op.operands[0])
    table = b.pool_constant(op.operands[1])
    if index is None or table is None or not np.isfinite(b.pool.array(table.key)).all():
        return None
    n = table.shape[0]
    low = b.min(b.max(index, b.scalar(0, index)), b.scalar(n - 1, index))
    row = b.select(b.eq(low, index), index, b.scalar(n, index))
    ends = [0] * len(table.shape)
    rows = b.pad(op.operands[1], b.scalar(0, op.results[0]), low=ends, high=[1, *ends[1:]])
    result: Value = b.gather(rows, row, axis=0)
    return result


def _index(b: Rewriter, value: Value) -> Value | None:
    """x where a value is cast(x[..., 1] == 0 .. n-1)."""
    cast = b.producer(value, "cast")
    test = None if cast is None else b.producer(cast.operands[0], "eq")
    if test is None:
        return None
    x, numbers = test.operands
    count = dims_of(value)[-1:]
    if not is_constant(numbers) or dtype_of(x).name not in ("i32", "i64"):
        return None
    if dims_of(x) != (*dims_of(value)[:-1], 1) or dims_of(numbers)[-1:] != count:
        return None
    known = b.pool_constant(numbers)
    if known is None or known.size != count[0]:
        return None
    if not np.array_equal(b.pool.array(known.key).reshape(-1), np.arange(known.size)):
        return None
    result: Value = b.reshape(x, dims=dims_of(x)[: rank_of(x) - 1])
    return result
