"""The importer's builder: folds what is known at compile time, and checks what a file asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cuvil.frontends.onnx.equal import Equalities, equal_dims
from cuvil.frontends.onnx.fold import LIMIT, fold, is_numeric
from cuvil.ir.attrs import read_attrs, write_attrs
from cuvil.ir.build import INLINE_LIMIT, Builder, constant_array, is_constant
from cuvil.ir.dims import largest_number
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import PRIMITIVES, attrs_of, tensor_type
from cuvil.ir.types import TensorType

__all__ = ["FoldingBuilder"]

MAX_RANK = 32
MAX_ELEMENTS = 1 << 48
MAX_NUMBER = 1 << 62

Array = np.ndarray[Any, Any]


class FoldingBuilder(Builder):
    """A Builder that knows values: see `fold`. ValueError for a type no machine can hold."""

    def __init__(self, block: Block, pool: Pool, equalities: Equalities) -> None:
        super().__init__(block, pool)
        self.equalities = equalities
        self._known: dict[Value, Array] = {}
        self.here = ""  # the node that is being imported, for messages

    def known(self, value: Value) -> Array | None:
        """The value as a small array of numbers or Dims, or None where it is not known."""
        size = tensor_type(value).size
        if value in self._known:
            return self._known[value]
        if not is_constant(value) or not isinstance(size, int) or size > LIMIT:
            return None
        assert isinstance(value.owner, Operation)
        return self._known.setdefault(value, constant_array(value.owner, self.pool))

    def emit(self, name: str, operands: Sequence[Value], **attrs: Any) -> Any:
        """As `Builder.emit`; what folds gives a constant or a `cuvil.dims`."""
        known = [self.known(v) for v in operands] if name != "constant" else [None]
        found = [k for k in known if k is not None]
        if len(found) < len(known):
            return self._checked(name, operands, super().emit(name, operands, **attrs))
        record = PRIMITIVES[name]
        full = read_attrs(record.attrs, write_attrs(record.name, record.attrs, attrs))
        types = [tensor_type(v) for v in operands]
        out = list(record.infer(types, full))
        value = fold(name, found, types, full, out[0]) if len(out) == 1 else None
        if value is None:
            return self._checked(name, operands, super().emit(name, operands, **attrs))
        if is_numeric(value):
            return self.const(value)
        if out[0].dtype.is_integer:
            dims = {"dims": tuple(value.ravel()), "shape": value.shape}
            result = super().emit("dims", (), dtype=out[0].dtype.name, **dims)
        else:  # floats made of dims have no op of their own: keep the real one beside the value
            result = super().emit(name, operands, **attrs)
        self._known[result] = value
        return result

    def note(self, value: Value, known: Array) -> None:
        """Remembers what a value is: numbers or Dims."""
        self._known[value] = known

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Ops built meanwhile are appended to another block."""
        before, self.point = self.point, Builder(block, self.pool).point
        try:
            yield
        finally:
            self.point = before

    def file_constant(self, key: str) -> Value:
        """The constant `key` of the pool: inline where it is small, else a reference."""
        constant = self.pool.get(key)
        return (
            self.const(self.pool.array(key))
            if constant.size <= INLINE_LIMIT
            else (self.pooled(key))
        )

    def _checked(self, name: str, operands: Sequence[Value], results: Any) -> Any:
        values = results if isinstance(results, tuple) else (results,)
        for value in values:
            check_size(tensor_type(value))
        if values:
            types = [tensor_type(v) for v in operands]
            out = [tensor_type(v) for v in values]
            for a, b in equal_dims(name, types, out, attrs_of(values[0].owner)):
                self.equalities.note(a, b, self.here)
        return results


def check_size(kind: TensorType) -> None:
    """ValueError for a type that no machine can hold."""
    if kind.rank > MAX_RANK:
        raise ValueError(f"rank {kind.rank}, the limit is {MAX_RANK}")
    total = 1
    for dim in kind.dims:
        if isinstance(dim, int):
            if dim < 0:
                raise ValueError(f"negative extent in shape [{', '.join(map(str, kind.dims))}]")
            total *= max(dim, 1)  # no machine counts the others, though a 0 makes them none
        elif largest_number(dim) > MAX_NUMBER:
            raise ValueError(f"an extent with numbers beyond 64 bits: {str(dim)[:80]}")
    if total > MAX_ELEMENTS:
        raise ValueError(f"a tensor of {total} elements, the limit is {MAX_ELEMENTS}")
