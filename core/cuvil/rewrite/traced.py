"""Tensors that record what is done with them: what functions of `cuvil.op` work on."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

from cuvil.ir.build import Builder
from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type


class Tensor:
    """A value of a graph under construction. Operators are those of arrays; they broadcast."""

    def __init__(self, builder: Builder, value: Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def rank(self) -> int:
        """The number of axes."""
        return tensor_type(self.value).rank

    def __add__(self, other: Any) -> Tensor:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return apply("div", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return apply("pow", self, other)

    def __matmul__(self, other: Tensor) -> Tensor:
        return matmul(self, other)

    def __neg__(self) -> Tensor:
        return apply("neg", self)


def apply(name: str, *operands: Tensor | float, **attrs: Any) -> Tensor:
    """A primitive on tensors and numbers; a number takes the type of the first tensor.

    ValueError where operands do not fit. TypeError without a tensor.
    """
    like = next((x for x in operands if isinstance(x, Tensor)), None)
    if like is None:
        raise TypeError(f"{name} needs a tensor")
    b = like.builder
    values = [x.value if isinstance(x, Tensor) else b.scalar(x, like.value) for x in operands]
    result = b.emit(name, values, **attrs)
    if isinstance(result, tuple):
        raise ValueError(f"{name} has several results")
    return Tensor(b, result)


def axis_of(x: Tensor, axis: int) -> int:
    """An axis counted from either end; ValueError outside the rank."""
    if not -x.rank <= axis < x.rank:
        raise ValueError(f"axis {axis} of rank {x.rank}")
    return axis % x.rank


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """numpy's matmul of at least two axes each; batch axes of both or of one operand only."""
    if x.rank < 2 or y.rank < 2:
        raise ValueError(f"matmul of ranks {x.rank} and {y.rank}")
    count = max(x.rank, y.rank) - 2
    batch = ascii_lowercase[:count]
    own, other = batch[count - x.rank + 2 :], batch[count - y.rank + 2 :]
    return apply("contract", x, y, spec=f"{own}xy,{other}yz->{batch}xz")
