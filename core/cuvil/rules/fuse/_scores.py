"""What the scores of an attention are made of, read from their masks back to the product."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.values import attrs_of, dims_of, name_of, number, one_user


@dataclass
class Scores:
    """scale * contract(operands, spec), then masks: added, or chosen (False is `fill`)."""

    operands: list[Value]
    spec: str
    scale: float = 1.0
    added: list[Value] = field(default_factory=list)
    chosen: Value | None = None
    fill: float = -math.inf

    @property
    def masked(self) -> bool:
        """Whether a mask was found."""
        return bool(self.added) or self.chosen is not None

    def times(self, factor: float, inverse: bool) -> bool:
        """Multiplies or divides the scale; False where the result is no plain number."""
        if factor == 0 or not math.isfinite(factor):
            return False
        self.scale = self.scale / factor if inverse else self.scale * factor
        return True


def find_scores(b: Rewriter, value: Value, user: Operation) -> Scores | None:
    """The parts of a value that `user` alone uses; None where it is not of this form."""
    op = b.producer(value, "contract", "add", "select", "mul", "div")
    if op is None or one_user(value) is not user:
        return None
    return _PARTS[name_of(op)](b, op)


def _product(b: Rewriter, op: Operation) -> Scores:
    """The product; numbers that multiply its operands go into the scale."""
    found = Scores(list(op.operands), attrs_of(op).spec)
    for i, value in enumerate(op.operands):
        if op.operands[0] is op.operands[1] or one_user(value) is not op:
            continue
        view = b.producer(value, "reshape")
        factor = b.producer(view.operands[0] if view is not None else value, "mul", "div")
        split = _split(factor) if factor is not None else None
        if factor is None or split is None or one_user(factor.results[0]) not in (op, view):
            continue
        if found.times(split[1], name_of(factor) == "div"):
            plain = split[0]
            found.operands[i] = plain if view is None else b.reshape(plain, dims=dims_of(value))
    return found


def _split(op: Operation) -> tuple[Value, float] | None:
    """x and c of x * c or x / c, for a number c."""
    pairs = [op.operands] if name_of(op) == "div" else [op.operands, op.operands[::-1]]
    for value, other in pairs:
        factor = number(other)
        if factor is not None and dims_of(value) == dims_of(op.results[0]):
            return value, float(factor)
    return None


def _multiple(b: Rewriter, op: Operation) -> Scores | None:
    split = _split(op)
    found = find_scores(b, split[0], op) if split is not None else None
    if split is None or found is None or found.masked:
        return None
    return found if found.times(split[1], name_of(op) == "div") else None


def _sum(b: Rewriter, op: Operation) -> Scores | None:
    for inner, mask in (op.operands, op.operands[::-1]):
        found = find_scores(b, inner, op) if dims_of(inner) == dims_of(op.results[0]) else None
        if found is not None and found.chosen is None:
            found.added.append(mask)
            return found
    return None


def _selection(b: Rewriter, op: Operation) -> Scores | None:
    seen, inner, other = op.operands
    turned = number(other) is None
    if turned:
        inner, other = other, inner
    fill = number(other)
    if fill is None or dims_of(inner) != dims_of(op.results[0]):
        return None
    found = find_scores(b, inner, op)
    if found is None or found.masked:
        return None
    found.chosen = b.not_(seen) if turned else seen
    found.fill = float(fill)
    return found


_PARTS = {
    "contract": _product,
    "mul": _multiple,
    "div": _multiple,
    "add": _sum,
    "select": _selection,
}
