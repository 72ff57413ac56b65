"""Contractions of tensors whose rows were merged into one axis."""

from __future__ import annotations

from string import ascii_letters

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.axes import reshape_groups
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of


@rule(
    "contract",
    example=case(
        lambda b, x, w: b.contract(b.reshape(x, dims=(6, 4)), w, spec="mk,kn->mn"),
        x="[2, 3, 4] f32", w="[4, N] f32",
    ),
    near_miss=case(
        lambda b, x, w: b.contract(b.reshape(x, dims=(3, 8)), w, spec="mk,kn->mn"),
        x="[3, 2, 4] f32", w="[8, 5] f32",
    ),
    group="vectorize_matmul",
    tolerance=1e-6,
)  # fmt: skip
def contract_of_reshape(b: Rewriter, op: Operation) -> Value | None:
    """A reshape that merges axes of rows follows the contraction instead of preceding it."""
    spec = parse(attrs_of(op).spec)
    out, letters, operands = spec.out, [spec.a, spec.b], list(op.operands)
    free = [c for c in ascii_letters if c not in spec.a + spec.b]
    for i, value in enumerate(op.operands):
        view = b.producer(value, "reshape")
        if view is None:
            continue
        own = spec.rows if i == 0 else spec.columns
        split = _split(view, letters[i], own, free)
        if split is None:
            continue
        operands[i] = view.operands[0]
        letters[i] = "".join(split.values())
        out = "".join(split[c] if c in own else c for c in out)
    if operands == list(op.operands):
        return None
    result = b.contract(
        *operands, spec=f"{letters[0]},{letters[1]}->{out}", accumulate=attrs_of(op).accumulate
    )
    return b.reshape(result, dims=dims_of(op.results[0]))


def _split(view: Operation, letters: str, own: str, free: list[str]) -> dict[str, str] | None:
    """The letters of the axes of the reshape's operand, by the letter of the axis they become.

    None unless some letter of `own` is made of several axes and every other one of itself.
    """
    source = dims_of(view.operands[0])
    groups = reshape_groups(source, dims_of(view.results[0]))
    if groups is None or any(len(target) != 1 for _, target in groups):
        return None
    split: dict[str, str] = {}
    for axes, (target,) in groups:
        letter = letters[target]
        if len(axes) == 1:
            split[letter] = letter
        elif letter in own and axes and len(free) >= len(axes):
            split[letter] = "".join(free.pop() for _ in axes)
        else:
            return None
    return split if any(len(c) > 1 for c in split.values()) else None
