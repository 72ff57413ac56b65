"""Element-wise ops on rows of a constant table."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, is_constant, name_of, one_user, rank_of, size_of


@rule(
    "#pointwise",
    example=case(
        lambda b, x: b.exp(
            b.add(b.gather(b.const(sample(9, 4)), x, axis=0), b.const(sample(1, 1, 4)))
        ),
        x="[B, 3] i64",
    ),
    near_miss=[
        case(
            lambda b, x: b.add(b.gather(b.const(sample(9, 4)), x, axis=0), b.const(sample(3, 4))),
            x="[B, 3] i64",
        ),
        case(lambda b, x: b.exp(b.gather(b.const(sample(99, 99)), x, axis=0)), x="[] i64"),
    ],
)
def gather_last(b: Rewriter, op: Operation) -> Value | None:
    """f(row of a table) is a row of f(table), where the table is small and has no
    more rows than are looked up."""
    if name_of(op) == "dequantize_linear":  # codes stay codes: see `gather_of_codes`
        return None
    source = next((s for v in op.operands if (s := b.producer(v, "gather")) is not None), None)
    if source is None or one_user(source.results[0]) is not op:
        return None
    table, index = source.operands
    if attrs_of(source).axis != 0 or not is_constant(table) or not _pays(table, index):
        return None
    if dims_of(source.results[0]) != dims_of(op.results[0]):
        return None
    operands = [_for_rows(b, v, table, source) for v in op.operands]
    if any(v is None for v in operands):
        return None
    rows = b.like(op, [v for v in operands if v is not None])
    result: Value = b.gather(rows, index, axis=0)
    return result


def _pays(table: Value, index: Value) -> bool:
    """Whether there are at least as many look-ups as rows, or not known to be fewer."""
    entries, looked_up = size_of(table), size_of(index)
    few = isinstance(looked_up, int) and looked_up < dims_of(table)[0]  # type: ignore[operator]
    return isinstance(entries, int) and entries < 1 << 18 and not few


def _for_rows(b: Rewriter, value: Value, table: Value, source: Operation) -> Value | None:
    """An operand as it applies to the table; None where it depends on the place of the index."""
    if value is source.results[0]:
        return table
    if not is_constant(value):
        return None
    dims = list(dims_of(value))
    while len(dims) > rank_of(table) - 1 and dims[0] == 1:
        dims.pop(0)
    if len(dims) > rank_of(table) - 1:
        return None
    result: Value = b.reshape(value, dims=dims)
    return result
