"""Matrix products by numpy's rules."""

from __future__ import annotations

from string import ascii_lowercase

from cuvil.ops.compose.context import Cx, Value

__all__ = ["matmul_of"]


def matmul_of(cx: Cx, a: Value, b: Value) -> Value:
    """numpy's matmul: vectors gain an axis and lose it again, batch axes broadcast."""
    ranks = cx.type(a).rank, cx.type(b).rank
    if 0 in ranks:
        cx.bad("takes no rank-0 operand")
    left, right = "mk" if ranks[0] > 1 else "k", "kn" if ranks[1] > 1 else "k"
    count = max(ranks[0] - 2, ranks[1] - 2, 0)
    free = [c for c in ascii_lowercase if c not in "mkn"]
    if count > len(free):
        cx.fail(f"{count} batch axes are too many")
    batch = "".join(free[:count])
    x, own = _batched(cx, a, b, batch)
    y, other = _batched(cx, b, a, batch)
    tail = left.strip("k") + right.strip("k")
    return cx.b.contract(x, y, spec=f"{own}{left},{other}{right}->{batch}{tail}")


def _batched(cx: Cx, x: Value, other: Value, batch: str) -> tuple[Value, str]:
    """An operand without the batch axes that it repeats along, and the letters of the others."""
    own, matrix = cx.dims(x)[:-2], cx.dims(x)[-2:]
    theirs = (1,) * len(own) + cx.dims(other)[:-2]
    letters, opposite = batch[len(batch) - len(own) :], theirs[len(theirs) - len(own) :]
    kept = [(c, d) for c, d, o in zip(letters, own, opposite, strict=True) if d != 1 or o == 1]
    chosen = "".join(c for c, _ in kept)
    if len(kept) == len(own):
        return x, chosen
    return cx.b.reshape(x, dims=[*(d for _, d in kept), *matrix]), chosen
