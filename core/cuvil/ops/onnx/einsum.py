"""Einstein summation as a chain of contractions."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op

Term = tuple[Value, str]


@onnx_op("Einsum", since=12)
def einsum(cx: Cx, x: Value, *rest: Value, equation: str) -> Value:
    """numpy's einsum."""
    operands = [x, *rest]
    terms, out = parse(cx, equation.replace(" ", ""), [cx.type(v).rank for v in operands])
    chain = [diagonal(cx, v, t) for v, t in zip(operands, terms, strict=True)]
    value, letters = chain[0]
    for k, (other, theirs) in enumerate(chain[1:], 1):
        needed = set(out).union(*(t for _, t in chain[k + 1 :]))
        value, letters = product(cx, (value, letters), (other, theirs), needed)
    value, letters = summed(cx, value, letters, set(out))
    order = [letters.index(c) for c in out]
    return value if order == sorted(order) else cx.b.transpose(value, perm=order)


def parse(cx: Cx, equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """(letters of every operand, letters of the result), an ellipsis replaced by letters."""
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        cx.bad(f"equation {equation!r} has {len(terms)} terms for {len(ranks)} operands")
    spare = [c for c in ascii_letters if c not in equation]
    pairs = list(zip(terms, ranks, strict=True))
    hidden = [r - len(t.replace("...", "")) if "..." in t else 0 for t, r in pairs]
    most = max(hidden)
    if min(hidden) < 0 or most > len(spare):
        cx.bad(f"equation {equation!r} does not fit ranks {list(ranks)}")
    dots = "".join(spare[:most])
    full = [t.replace("...", dots[most - h :]) for t, h in zip(terms, hidden, strict=True)]
    if not arrow:
        once = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        out = ("..." if most else "") + "".join(once)
    out = out.replace("...", dots)
    for term, rank in zip(full, ranks, strict=True):
        if len(term) != rank or not (term.isalpha() or not term):
            cx.bad(f"equation {equation!r}: term {term!r} does not fit rank {rank}")
    if len(set(out)) != len(out) or not set(out) <= set("".join(full)):
        cx.bad(f"equation {equation!r}: result {out!r}")
    return full, out


def diagonal(cx: Cx, x: Value, letters: str) -> Term:
    """An operand in which every letter stands once: repeated ones take the diagonal."""
    for letter in sorted(set(letters)):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            rank, dims = len(letters), cx.dims(x)
            places = [
                cx.b.iota(dims=[d if k == at else 1 for k, d in enumerate(dims)], axis=at)
                for at in (first, second)
            ]
            kept = cx.b.select(cx.b.eq(*places), x, cx.b.scalar(0, x))
            x = cx.b.reduce(kept, kind="sum", axes=(second,), keepdims=False)
            letters = "".join(letters[k] for k in range(rank) if k != second)
    return x, letters


def summed(cx: Cx, x: Value, letters: str, needed: set[str]) -> Term:
    """An operand without the letters that nobody else needs."""
    axes = tuple(k for k, c in enumerate(letters) if c not in needed)
    if axes:
        x = cx.b.reduce(x, kind="sum", axes=axes, keepdims=False)
    return x, "".join(c for c in letters if c in needed)


def product(cx: Cx, a: Term, b: Term, needed: set[str]) -> Term:
    """The contraction of two operands, keeping the letters in `needed`."""
    (x, left), (y, right) = a, b
    x, left = squeezed(cx, *summed(cx, x, left, needed | set(right)), y, right)
    y, right = squeezed(cx, *summed(cx, y, right, needed | set(left)), x, left)
    shared = [c for c in left if c in right and c in needed]
    own = [c for c in left if c not in right]
    theirs = [c for c in right if c not in left]
    out = "".join([*shared, *own, *theirs])
    return cx.b.contract(x, y, spec=f"{left},{right}->{out}"), out


def squeezed(cx: Cx, x: Value, letters: str, other: Value, theirs: str) -> Term:
    """An operand without axes of extent 1 that repeat along the other's."""
    repeats = [
        c in theirs and d == 1 and cx.dims(other)[theirs.index(c)] != 1
        for c, d in zip(letters, cx.dims(x), strict=True)
    ]
    if not any(repeats):
        return x, letters
    kept = [(c, d) for c, d, r in zip(letters, cx.dims(x), repeats, strict=True) if not r]
    return cx.b.reshape(x, dims=[d for _, d in kept]), "".join(c for c, _ in kept)
