"""What a record sees of the call that it imports: the `Cx` of `cuvil.ops.aten.context`."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import count
from typing import Any, NoReturn

import torch
from torch.fx import Node

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.torch.signature import value_of
from cuvil.frontends.torch.types import tensor_type_of
from cuvil.ir.build import Builder
from cuvil.ir.dims import Dim, SymDim, symbol, symbols
from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType

__all__ = ["NOT_GIVEN", "Call", "Sizes", "settled"]


class _NotGiven:
    """Stands for a result that a record does not give, or a value of no type that Cuvil has."""


NOT_GIVEN = _NotGiven()


class Sizes:
    """Symbols that have a value when a run comes to the current op."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._numbers = count()

    def fresh(self, hint: str) -> SymDim:
        """A symbol of the importer's own."""
        return symbol(f"{hint}_{next(self._numbers)}")

    def missing(self, dims: Iterable[Dim]) -> set[str]:
        """Symbols of these extents that have no value yet."""
        return {s for d in dims for s in symbols(d)} - self.known


class Call:
    """One node; see `cuvil.ops.aten.context.Cx` for what the methods promise."""

    def __init__(self, b: Builder, where: str, node: Node, sizes: Sizes) -> None:
        self.b = b
        self.where = where
        self.sizes = sizes
        self._node = node
        value = value_of(node)
        values = value if isinstance(value, list | tuple) else [value]
        self.out = [tensor_type_of(v) if isinstance(v, torch.Tensor) else None for v in values]

    @property
    def result(self) -> TensorType:
        first = self.out[0] if self.out else None
        if first is None:
            self.fail("the result is no tensor")
        return first

    def used(self, result: int) -> bool:
        return any(u.target is operator.getitem and u.args[1] == result for u in self._node.users)

    def known_ints(self, value: Value, what: str) -> list[Dim]:
        self.fail(f"{what} depends on input data")

    def dims(self, value: Value) -> tuple[Dim, ...]:
        return tensor_type(value).dims

    def type(self, value: Value) -> TensorType:
        return tensor_type(value)

    def bind(self, value: Value, hint: str, most: Dim) -> Dim:
        return self.bind_to(value, self.sizes.fresh(hint), most)

    def bind_to(self, value: Value, size: Dim, most: Dim | None) -> Dim:
        if not isinstance(size, SymDim) or size != symbol(str(size)):
            self.fail(f"an extent that only a run can tell is {size}, no symbol")
        self.b.emit("bind", [value], symbol=str(size), least=0, most=most)
        self.sizes.known.add(str(size))
        return size

    def equal(self, a: Dim, b: Dim) -> None:
        """Guards of torch have checked it."""

    def require(self, a: Dim, b: Dim) -> None:
        """Guards of torch have checked it."""

    def fail(self, reason: str) -> NoReturn:
        raise UnsupportedError(f"{self.where}: {reason}")

    def bad(self, reason: str) -> NoReturn:
        raise ModelError(f"{self.where}: {reason}")


def settled(cx: Call, found: Any) -> Any:
    """Results in the extents that torch gives them. UnsupportedError where a record is wrong."""
    if not isinstance(found, list | tuple):
        return _fitted(cx, found, cx.out[0])
    padded = [*found, *[None] * (len(cx.out) - len(found))]
    return tuple(_fitted(cx, v, t) for v, t in zip(padded, cx.out, strict=True))


def _fitted(cx: Call, value: Any, wanted: TensorType | None) -> Any:
    if value is None or wanted is None:
        return NOT_GIVEN if wanted is not None else None
    have = tensor_type(value)
    missing = cx.sizes.missing(wanted.dims)
    if missing:
        cx.fail(f"its extents depend on data ({', '.join(sorted(missing))})")
    if have == wanted:
        return value
    fits = have.rank == wanted.rank and not any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(have.dims, wanted.dims, strict=True)
    )
    if have.dtype != wanted.dtype or not fits:
        cx.fail(f"the record gives {have}, torch says {wanted}")
    return cx.b.reshape(value, dims=wanted.dims)
