"""Extents that must be equal for an operation to make sense, though their expressions differ.

Two inputs [A] and [B] that are added must have one extent when the model runs (or B is 1, which
code for both cases would have to look at each time: Cuvil asks for equal ones). Where an extent is
a bare symbol of an input, the importer puts the other expression in its place, so that what runs
checks it when it binds the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, symbol, symbols
from cuvil.ir.record import PRIMITIVES
from cuvil.ir.types import TensorType
from cuvil.ops.contract import parse

__all__ = ["Equalities", "equal_dims"]

Pairs = Iterator[tuple[Dim, Dim]]


class Equalities:
    """What is to be put in place of symbols of inputs."""

    def __init__(self, free: Sequence[str]) -> None:
        self._free = dict.fromkeys(free)
        self.found: dict[str, Dim] = {}
        self.where: dict[str, str] = {}

    def note(self, a: Dim, b: Dim, where: str = "") -> None:
        """a and b must be equal: remembers it where one is a symbol that nothing else fixes.

        where: who needs it, for messages.

        Of two symbols the one that the inputs name first stays.
        """
        for name in reversed(self._free):
            for dim, other in ((a, b), (b, a)):
                if dim == symbol(name) and self._settled(name, other):
                    self.found[name] = other
                    self.where[name] = where
                    return

    def _settled(self, name: str, other: Dim) -> bool:
        """Whether `other` may stand for a symbol: made of inputs' symbols that all stay."""
        inner = set(symbols(other))
        stay = inner <= self._free.keys() - self.found.keys() - {name}
        return stay and name not in self.found and not self._used(name)

    def note_common(self, branches: Sequence[Equalities]) -> None:
        """Takes over what all branches of a choice need."""
        for name, other in branches[0].found.items():
            if all(branch.found.get(name) == other for branch in branches):
                self.note(symbol(name), other, branches[0].where[name])

    def branch(self) -> Equalities:
        """Nothing noted yet, for the same inputs."""
        return Equalities(tuple(self._free))

    def _used(self, name: str) -> bool:
        return any(name in symbols(other) for other in self.found.values())


def equal_dims(
    name: str, operands: Sequence[TensorType], results: Sequence[TensorType], attrs: Attrs
) -> Pairs:
    """Pairs of extents of a primitive's values that must be equal and look unequal."""
    rule = _RULES.get(name)
    if rule is None and "pointwise" in PRIMITIVES[name].tags:
        rule = _broadcast
    for a, b in rule(operands, results, attrs) if rule else ():
        if a != b and not (isinstance(a, int) and isinstance(b, int)):
            yield a, b


Rule = Callable[[Sequence[TensorType], Sequence[TensorType], Attrs], Pairs]


def _broadcast(t: Sequence[TensorType], out: Sequence[TensorType], _: Attrs) -> Pairs:
    for kind in t:
        yield from _aligned(kind.dims, out[0].dims)


def _aligned(dims: Sequence[Dim], target: Sequence[Dim]) -> Pairs:
    for d, o in zip(reversed(dims), reversed(target), strict=False):
        if d != 1:
            yield d, o


def _contract(t: Sequence[TensorType], out: Sequence[TensorType], a: Attrs) -> Pairs:
    spec = parse(a.spec)
    found = dict(zip(spec.out, out[0].dims, strict=True))
    for letter, dim in chain(*(zip(s, k.dims, strict=True) for s, k in zip(spec, t, strict=False))):
        yield dim, found.setdefault(letter, dim)


def _concat(t: Sequence[TensorType], out: Sequence[TensorType], a: Attrs) -> Pairs:
    for kind in t:
        for axis, (d, o) in enumerate(zip(kind.dims, out[0].dims, strict=True)):
            if axis != a.axis:
                yield d, o


def _reshape(t: Sequence[TensorType], out: Sequence[TensorType], _: Attrs) -> Pairs:
    """One extent each is left once equal ones are struck out on both sides."""
    have, want = list(t[0].dims), list(out[0].dims)
    for dim in t[0].dims:
        if dim in want:
            have.remove(dim)
            want.remove(dim)
    have, want = ([d for d in dims if d != 1] for dims in (have, want))
    if len(have) == len(want) == 1:
        yield have[0], want[0]
    elif not have and len(want) == 1:
        yield want[0], 1
    elif not want and len(have) == 1:
        yield have[0], 1


def _conv(t: Sequence[TensorType], _: Sequence[TensorType], a: Attrs) -> Pairs:
    channels = t[0].dims[1 if a.layout == "channels_first" else -1]
    yield channels, t[1].dims[1] * a.groups


def _conv_transpose(t: Sequence[TensorType], _: Sequence[TensorType], a: Attrs) -> Pairs:
    yield t[0].dims[1 if a.layout == "channels_first" else -1], t[1].dims[0]


def _norm(t: Sequence[TensorType], out: Sequence[TensorType], _: Attrs) -> Pairs:
    for kind in t[1:]:
        yield from _aligned(kind.dims, out[0].dims)


_RULES: dict[str, Rule] = {
    "broadcast": _broadcast,
    "contract": _contract,
    "concat": _concat,
    "reshape": _reshape,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "layer_norm": _norm,
    "rms_norm": _norm,
}
