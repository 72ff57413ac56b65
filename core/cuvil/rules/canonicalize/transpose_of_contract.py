"""Transposed results of contractions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.axes import permuted
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, name_of, one_user, users


@rule(
    "transpose",
    example=case(
        lambda b, p, v: b.transpose(
            b.contract(p, v, spec="hst,htd->hsd"), perm=(1, 0, 2)
        ),
        p="[2, 3, S] f32", v="[2, S, 4] f32",
    ),
    near_miss=case(
        lambda b, x, y: b.transpose(b.contract(x, y, spec="mk,kn->mn"), perm=(1, 0)),
        x="[B, 4] f32", y="[4, 3] f32",
    ),
    group="vectorize_matmul",
    tolerance=1e-6,
)  # fmt: skip
def transpose_of_contract(b: Rewriter, op: Operation) -> Value | None:
    """A contraction writes its result in another order of letters, where the last one, along
    which vectors run, stays one of the same operand's. Another contraction reads it as it is."""
    inner = b.producer(op.operands[0], "contract")
    if inner is None or one_user(inner.results[0]) is not op:
        return None
    if any(name_of(user) == "contract" for user in users(op.results[0])):
        return None
    spec = parse(attrs_of(inner).spec)
    out = "".join(permuted(spec.out, attrs_of(op).perm))
    if out[-1] in spec.batch or (out[-1] in spec.a) != (spec.out[-1] in spec.a):
        return None
    b.keep_location(inner)
    result: Value = b.contract(
        *inner.operands, spec=f"{spec.a},{spec.b}->{out}", accumulate=attrs_of(inner).accumulate
    )
    return result
