"""What a primitive's nest lowering may ask of the planner, and helpers that lowerings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import ml_dtypes
import numpy as np

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, bounds
from cuvil.ir.dtypes import DType
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.types import TensorType

BLOCK = 512  # elements of the last axis that a task which works on whole rows takes at once


def block_room(extent: Dim) -> int:
    """How many of them there are at most: what a task needs scratch for."""
    return min(BLOCK, extent) if isinstance(extent, int) else BLOCK


class ElementCx(Protocol):
    """For `Primitive.element`: computes one element of the result from elements of operands.

    operand(i, index): the element of operand i at a multi-index of its own rank. The operand may
    be a buffer (a load) or a fused producer (inlined): the lowering does not care. It is built
    where the builder stands, so a lowering asks inside the innermost loop that needs it.
    buffer(i): that of an operand that is a constant of several elements, or of any operand where
    the record's tags say "opaque". run(): the buffer that stands for the run, for functions that
    make strings.
    """

    b: NestBuilder
    attrs: Attrs

    @property
    def operand_types(self) -> Sequence[TensorType]: ...
    @property
    def result_type(self) -> TensorType: ...
    def operand(self, i: int, index: Sequence[Index]) -> Value: ...
    def buffer(self, i: int) -> Value: ...
    def run(self) -> Value: ...


class KernelCx(ElementCx, Protocol):
    """For `Primitive.kernel`: writes all elements of the results.

    tasks(dims): declares the space of independent tasks and gives this task's multi-index; called
    at most once, first (not at all: one task). store(value, index, result): writes an element of
    a result; a fused pointwise consumer is applied on the way. result_buffer(result): the buffer
    itself, dense, for kernels that read back what they have stored; nothing is fused behind it
    then, and the record's tags say "dense".
    scratch(count, dtype): room for `count` elements that this task alone uses; asked for after
    `tasks` and outside loops. A symbolic count gets its room in the arena, one part per task.
    """

    @property
    def result_types(self) -> Sequence[TensorType]: ...
    def tasks(self, dims: Sequence[Dim]) -> tuple[Index, ...]: ...
    def store(self, value: Value, index: Sequence[Index], result: int = 0) -> None: ...
    def result_buffer(self, result: int = 0) -> Value: ...
    def scratch(self, count: Dim, dtype: str) -> Scratch: ...


@dataclass(frozen=True)
class Scratch:
    """Room of one task: elements 0 .. count - 1 of `buffer` from element `base` on."""

    b: NestBuilder
    buffer: Value
    base: Index = 0

    def load(self, i: Index) -> Value:
        return self.b.load(self.buffer, self.b.add(self.base, i))

    def store(self, value: Value, i: Index) -> None:
        self.b.store(value, self.buffer, self.b.add(self.base, i))


def broadcast_index(
    index: Sequence[Index], source: Sequence[Dim], target: Sequence[Dim]
) -> list[Index]:
    """The index into `source` for an element of `target` under numpy broadcasting."""
    aligned = index[len(target) - len(source) :]
    pairs = zip(aligned, source, target[len(target) - len(source) :], strict=True)
    return [0 if s == 1 and t != 1 else i for i, s, t in pairs]


Body = Callable[..., Sequence[Value]]


def loops(
    b: NestBuilder,
    extents: Sequence[Dim],
    carried: Sequence[Value],
    body: Body,
    kind: str = "reduce",
) -> tuple[Value, ...]:
    """Nested loops over `extents`, the last innermost and of this kind.

    body(index, *carried) gives the next carried values; the final ones are returned. The outer
    loops are plain. Without extents the body runs once.
    """
    if not extents:
        return tuple(body((), *carried))
    here = kind if len(extents) == 1 else "reduce" if kind == "reduce" else ""
    with b.loop(0, b.dim(extents[0]), carried, kind=here) as loop:
        inner = loops(
            b,
            extents[1:],
            loop.args,
            lambda index, *values: body((loop.iv, *index), *values),
            kind,
        )
        loop.yield_(*inner)
    return loop.results


def for_each(
    b: NestBuilder,
    extents: Sequence[Dim],
    body: Callable[[tuple[Index, ...]], None],
    kind: str = "parallel",
) -> None:
    """Nested loops that carry nothing: body(index) for each index of the extents."""

    def step(index: tuple[Index, ...]) -> tuple[Value, ...]:
        body(index)
        return ()

    loops(b, extents, (), step, kind)


def both(b: NestBuilder, *conditions: Value | None) -> Value | None:
    """The conjunction of conditions; None stands for a condition that always holds."""
    result: Value | None = None
    for condition in conditions:
        if condition is not None:
            result = condition if result is None else b.scalar("and", result, condition)
    return result


def clamp(b: NestBuilder, index: Index, extent: Dim) -> Index:
    """`index` forced into [0, extent); 0 for an extent of 0."""
    return b.index("max", b.index("min", index, b.sub(b.dim(extent), 1)), 0)


def inside(b: NestBuilder, index: Index, extent: Dim) -> Value | None:
    """Whether 0 <= index < extent; None where that is known to hold."""
    if isinstance(index, int) and isinstance(extent, int) and 0 <= index < extent:
        return None
    low = None if isinstance(index, int) and index >= 0 else b.compare("le", 0, index)
    return both(b, low, b.compare("lt", index, b.dim(extent)))


def where_any(
    b: NestBuilder, extents: Sequence[Dim], dtype: str, load: Callable[[], Value]
) -> Value:
    """`load()`, or a zero where one of the indexed axes is empty, so that nothing can be read."""
    if all((bounds(d)[0] or 0) > 0 for d in extents):
        return load()
    if any(d == 0 for d in extents):
        return b.const(0, dtype)
    some = b.dim(1)
    for extent in extents:
        some = b.index("min", some, b.dim(extent))
    return b.if_(b.compare("lt", 0, some), load, lambda: b.const(0, dtype))


def guarded(b: NestBuilder, condition: Value | None, value: Value, other: Value) -> Value:
    """`value` where the condition holds, else `other`; both are computed, nothing branches."""
    if condition is None:
        return value
    kind = element_dtype(value)
    return b.scalar("select", condition, value, other, result=kind.name)


def element_dtype(value: Value) -> DType:
    """The dtype record of an element in a kernel body."""
    kind: DType = value.type.dtype  # type: ignore[attr-defined]
    return kind


def lowest(dtype: DType) -> float | int | bool:
    """The neutral element of max: -inf, the least integer, or False."""
    if dtype.is_float:
        return float("-inf")
    return int(ml_dtypes.iinfo(dtype.numpy).min) if dtype.is_integer else False


def highest(dtype: DType) -> float | int | bool:
    """The neutral element of min: +inf, the greatest integer, or True."""
    if dtype.is_float:
        return float("inf")
    return int(ml_dtypes.iinfo(dtype.numpy).max) if dtype.is_integer else True


def axis_in(axis: int, rank: int, what: str) -> int:
    """The axis, which must lie in [0, rank); ValueError otherwise."""
    if not 0 <= axis < rank:
        raise ValueError(f"{what}: axis {axis} is not an axis of rank {rank}")
    return axis


def wide(array: np.ndarray) -> np.ndarray:
    """f16 and bf16 arrays as f32, in which they are computed; others as they are."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and _is_float(array) else array


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"
