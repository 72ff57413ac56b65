"""What a rule asks about values: types, inline constants, users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import read_attrs
from cuvil.ir.build import is_constant
from cuvil.ir.dims import Dim, product
from cuvil.ir.dtypes import DType
from cuvil.ir.names import Operation, Value
from cuvil.ir.record import PRIMITIVES, attrs_of, of, tensor_type
from cuvil.ir.types import TensorType

__all__ = [
    "attrs_of",
    "dims_of",
    "dtype_of",
    "has_record",
    "has_tag",
    "is_constant",
    "name_of",
    "number",
    "numbers",
    "one_user",
    "owner",
    "rank_of",
    "size_of",
    "tensor_type",
    "users",
]


def owner(value: Value) -> Operation | None:
    """The op that makes a value; None for an argument of a graph or region."""
    return value.owner if isinstance(value.owner, Operation) else None


def has_record(op: Operation) -> bool:
    """Whether an op is a primitive, not a terminator or a container."""
    return hasattr(op, "record")


def name_of(op: Operation) -> str:
    """The name of a primitive without its dialect; that of another op in full."""
    return of(op).name if has_record(op) else op.name


def has_tag(op: Operation | None, tag: str) -> bool:
    """Whether an op is a primitive with this tag."""
    return op is not None and has_record(op) and tag in of(op).tags


def dims_of(value: Value) -> tuple[Dim, ...]:
    """The dims of a value's type."""
    return tensor_type(value).dims


def rank_of(value: Value) -> int:
    """The number of axes of a value."""
    return tensor_type(value).rank


def dtype_of(value: Value) -> DType:
    """The element type of a value."""
    return tensor_type(value).dtype


def size_of(value: Value) -> Dim:
    """The number of elements of a value."""
    return product(tensor_type(value).dims)


def users(value: Value) -> list[Operation]:
    """Every op that uses a value, each once."""
    return list(dict.fromkeys(use.operation for use in value.uses))


def one_user(value: Value) -> Operation | None:
    """The op that uses a value, however often, where it is the only one."""
    found = None
    for use in value.uses:
        if found is not None and use.operation is not found:
            return None
        found = use.operation
    return found


def numbers(value: Value) -> np.ndarray[Any, Any] | None:
    """The array of a constant that stands inline; None for any other value."""
    op = owner(value)
    if op is None or op.name != "cuvil.constant":
        return None
    attrs = read_attrs(PRIMITIVES["constant"].attrs, op.properties)
    found: Sequence[Any] | None = attrs.ints if attrs.ints is not None else attrs.floats
    if attrs.key or found is None:
        return None
    kind = TensorType.of((), attrs.dtype).dtype.numpy
    return np.array(found, dtype=kind).reshape(attrs.shape)


def number(value: Value) -> Any:
    """The number that every element of an inline constant is (int, float or bool), else None.

    A NaN stands for itself alone; -0.0 is not 0.0.
    """
    array = numbers(value)
    if array is None or array.size == 0:
        return None
    flat = array.reshape(-1)
    if array.size > 1 and (any(x != flat[0] for x in flat[1:]) or _mixed_zeros(flat)):
        return None
    return flat[0].item()


def _mixed_zeros(flat: np.ndarray[Any, Any]) -> bool:
    signs = np.signbit(flat) if flat.dtype.kind == "f" else np.zeros(1, bool)
    return bool(signs.any() != signs.all())
