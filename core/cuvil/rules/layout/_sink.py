"""What the rules that move transposes behind other ops share."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.axes import inverse, moves_only_units
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.values import attrs_of, dims_of, is_constant, rank_of, size_of

Perm = tuple[int, ...]


def transposed(b: Rewriter, value: Value) -> tuple[Value, Perm] | None:
    """(x, perm) where a value is transpose(x, perm)."""
    op = b.producer(value, "transpose")
    return None if op is None else (op.operands[0], attrs_of(op).perm)


def before(b: Rewriter, value: Value, perm: Perm) -> Value | None:
    """The value whose transpose by `perm` is `value`; None where that costs a transpose.

    A value of lower rank is one that broadcasts: leading dims of 1 are added and taken off again.
    """
    found = transposed(b, value)
    if found is not None and found[1] == perm:
        return found[0]
    if size_of(value) == 1:
        return value if rank_of(value) == 0 else b.reshape(value, dims=())
    dims = (*[1] * (len(perm) - rank_of(value)), *dims_of(value))
    back = inverse(perm)
    if not is_constant(value) and not moves_only_units(dims, back):
        return None
    moved: Value = b.transpose(b.reshape(value, dims=dims), perm=back)
    return trimmed(b, moved) if rank_of(value) < len(perm) else moved


def trimmed(b: Rewriter, value: Value) -> Value:
    """A value without its leading dims of 1."""
    dims = list(dims_of(value))
    while dims and dims[0] == 1:
        dims.pop(0)
    result: Value = b.reshape(value, dims=dims)
    return result


def perms_of(b: Rewriter, op: Operation, rank: int) -> list[Perm]:
    """The perms by which operands of this rank are transposed, each once."""
    found = [transposed(b, v) for v in op.operands if rank_of(v) == rank]
    return list(dict.fromkeys(t[1] for t in found if t is not None))


def moved(items: Sequence[object], perm: Perm) -> list[object]:
    """A list by axis of a transposed tensor, for the tensor before its transpose."""
    return [items[i] for i in inverse(perm)]
