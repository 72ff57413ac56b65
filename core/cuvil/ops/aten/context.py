"""What the record of an ATen overload may ask of the importer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cuvil.ir.dims import Dim
from cuvil.ir.names import Value as SSAValue
from cuvil.ir.types import TensorType
from cuvil.ops.compose import context as compose

__all__ = ["Cx", "Value"]

Value = Any  # a value of the graph, or a number, where the schema lets a number stand


class Cx(compose.Cx, Protocol):
    """One call under import.

    out: what torch says of each result: its type, or None where nothing can ask for it.
    """

    out: Sequence[TensorType | None]

    @property
    def result(self) -> TensorType:
        """The type of the first result. UnsupportedError where it is no tensor."""

    def used(self, result: int) -> bool:
        """Whether anything reads this result."""

    def bind(self, value: SSAValue, hint: str, most: Dim) -> Dim:
        """The only element of an i64 tensor as an extent that a run finds.

        A run fails where it is less than 0 or more than `most`.
        """

    def bind_to(self, value: SSAValue, size: Dim, most: Dim | None) -> Dim:
        """As `bind`, for an extent that torch has a symbol for already."""
