"""Tensors that lie inside another's buffer: parts of a concatenation, the image inside its padding,
slices. They are written and read in place, by strides, and nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim, dim_min, known_equal, known_ge, product
from cuvil.ir.names import Operation, Value
from cuvil.ir.record import tensor_type


@dataclass(frozen=True)
class Inside:
    """Where a tensor lies: `offset` elements into the buffer of `parent`, with these strides."""

    parent: Value
    offset: Dim
    strides: tuple[Dim, ...]


def dense(dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """Row-major strides in elements."""
    return tuple(product(dims[i + 1 :]) for i in range(len(dims)))


class Layouts:
    """Strides of stored tensors; one that is not mentioned is dense and has its own place.

    apart: tensors with a place of their own whose rows (the last axis) lie further apart than they
    are long, and how far, in elements.
    """

    def __init__(self) -> None:
        self.inside: dict[Value, Inside] = {}
        self.apart: dict[Value, Dim] = {}

    def get(self, value: Value) -> Inside | None:
        return self.inside.get(value)

    def strides(self, value: Value) -> tuple[Dim, ...]:
        """Strides in elements, one per axis."""
        found = self.inside.get(value)
        return found.strides if found else dense(self._room(value))

    def is_dense(self, value: Value) -> bool:
        return value not in self.inside and value not in self.apart

    def nbytes(self, value: Value) -> Dim:
        """The size in bytes of the place of a tensor that lies in no other."""
        return product(self._room(value)) * tensor_type(value).dtype.size

    def _room(self, value: Value) -> tuple[Dim, ...]:
        """The dims that the place of a tensor has room for."""
        dims, pitch = tuple(tensor_type(value).dims), self.apart.get(value)
        return dims if pitch is None else (*dims[:-1], pitch)

    def parts(self, value: Value) -> set[Value]:
        """The tensors that lie inside this one."""
        return {v for v, place in self.inside.items() if place.parent is value}


def storage(value: Value, layouts: Layouts) -> Value:
    """The value in whose buffer a value lies."""
    while True:
        inside, owner = layouts.get(value), value.owner
        if inside is not None:
            value = inside.parent
        elif isinstance(owner, Operation) and owner.name == "cuvil.reshape":
            value = owner.operands[0]
        else:
            return value


def start_of(value: Value, place: Inside) -> Dim:
    """`place.offset`; 0 where the value has no elements though its parent has some, so that no
    view begins behind its buffer: an image of no rows inside the border of a pad."""
    dims, outer = tensor_type(value).dims, tensor_type(place.parent).dims
    if all(a == b or known_ge(a, 1) for a, b in zip(dims, outer, strict=True)):
        return place.offset
    return dim_min(place.offset, place.offset * product(dims))


def contiguous(outer_stride: Dim, extent: Dim, stride: Dim) -> bool:
    """Whether an axis of this extent and stride continues in the axis around it."""
    return known_equal(outer_stride, extent * stride)
