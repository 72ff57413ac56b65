"""What a primitive's nest lowering may ask of the planner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import SSAValue

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.types import TensorType


class ElementCx(Protocol):
    """For `Primitive.element`: computes one element of the result from elements of operands.

    operand(i, index): the element of operand i at a multi-index of its own rank. The operand may
    be a buffer (a load) or a fused producer (inlined): the lowering does not care.
    """

    b: NestBuilder
    attrs: Attrs

    @property
    def operand_types(self) -> Sequence[TensorType]: ...
    @property
    def result_type(self) -> TensorType: ...
    def operand(self, i: int, index: Sequence[Index]) -> SSAValue: ...


class KernelCx(ElementCx, Protocol):
    """For `Primitive.kernel`: writes all elements of the results.

    tasks(dims): declares the space of independent tasks and gives this task's multi-index; called
    at most once, first. store(value, index, result): writes an element of a result; a fused
    pointwise consumer is applied on the way. load(index, result): reads back what this kernel has
    stored (only where `result_buffer` was asked for, so that nothing is fused behind it).
    """

    @property
    def result_types(self) -> Sequence[TensorType]: ...
    def tasks(self, dims: Sequence[Dim]) -> tuple[Index, ...]: ...
    def store(self, value: SSAValue, index: Sequence[Index], result: int = 0) -> None: ...
    def result_buffer(self, result: int = 0) -> SSAValue: ...


def broadcast_index(
    index: Sequence[Index], source: Sequence[Dim], target: Sequence[Dim]
) -> list[Index]:
    """The index into `source` for an element of `target` under numpy broadcasting."""
    aligned = index[len(target) - len(source) :]
    pairs = zip(aligned, source, target[len(target) - len(source) :], strict=True)
    return [0 if s == 1 and t != 1 else i for i, s, t in pairs]
