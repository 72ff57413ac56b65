"""Products of one tensor with several constant matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import Spec, parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, is_constant, name_of, one_user, rank_of, users


class _Product(NamedTuple):
    """contract(x, weights), perhaps with a bias; last: the value that a slice replaces."""

    op: Operation
    spec: Spec
    bias: Value | None
    last: Value


def _three(b: Any, x: Value) -> tuple[Value, ...]:
    return tuple(
        b.add(b.contract(x, b.const(sample(4, n, seed=n)), spec="bmk,kn->bmn"), b.const(sample(n)))
        for n in (5, 6, 7)
    )


@rule(
    "contract",
    example=case(_three, x="[B, S, 4] f32"),
    near_miss=case(
        lambda b, x, y: (
            b.contract(x, b.const(sample(4, 5)), spec="mk,kn->mn"),
            b.contract(y, b.const(sample(4, 5)), spec="mk,kn->mn"),
        ),
        x="[B, 4] f32", y="[B, 4] f32",
    ),
    group="vectorize_matmul",
    on=False,  # pays once a contraction reads slices in place
    tolerance=1e-5,
)  # fmt: skip
def merge_products(b: Rewriter, op: Operation) -> Mapping[Value, Value] | None:
    """Products with the same operand (query, key and value of an attention) are one product with
    the matrices side by side, and slices of its result."""
    x = op.operands[0]
    found = [p for user in users(x) if (p := _product(user, x)) is not None]
    mine = next((p for p in found if p.op is op), None)
    if mine is None:
        return None
    found = [p for p in found if _alike(p, mine)][::-1]
    if len(found) < 2 or not all(p.op is op or op.is_before_in_block(p.op) for p in found):
        return None
    return _merged(b, x, found)


def _product(op: Operation, x: Value) -> _Product | None:
    """The op where it is a product of x with constant weights, its last letter a column."""
    if name_of(op) != "contract" or op.operands[0] is not x or not is_constant(op.operands[1]):
        return None
    spec = parse(attrs_of(op).spec)
    if len(spec.columns) != 1 or spec.out[-1:] != spec.columns:
        return None
    user = one_user(op.results[0])
    if user is not None and name_of(user) == "add" and is_constant(user.operands[1]):
        bias = user.operands[1]
        if dims_of(bias) == dims_of(op.results[0])[-1:]:
            return _Product(op, spec, bias, user.results[0])
    return _Product(op, spec, None, op.results[0])


def _alike(p: _Product, q: _Product) -> bool:
    return p.spec == q.spec and p.op.parent is q.op.parent and (p.bias is None) == (q.bias is None)


def _merged(b: Rewriter, x: Value, products: list[_Product]) -> Mapping[Value, Value]:
    spec = products[0].spec
    # The constants may stand behind the first product: they are made anew in front of it.
    weights = [_again(b, p.op.operands[1]) for p in products]
    joined = b.concat(*weights, axis=spec.b.index(spec.columns))
    result = b.contract(x, joined, spec=attrs_of(products[0].op).spec)
    if products[0].bias is not None:
        biases = [_again(b, p.bias) for p in products if p.bias is not None]
        result = b.add(result, b.concat(*biases, axis=0))
    start: Dim = 0
    values: dict[Value, Value] = {}
    for p in products:
        dims = dims_of(p.last)
        starts = [*[0] * (rank_of(p.last) - 1), start]
        values[p.last] = b.slice(result, starts=starts, steps=[1] * len(dims), dims=dims)
        start = start + dims[-1]
    return values


def _again(b: Rewriter, value: Value) -> Value:
    op = value.owner
    assert isinstance(op, Operation)
    result: Value = b.like(op, [])
    return result
