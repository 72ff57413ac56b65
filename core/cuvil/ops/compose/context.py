"""What a shared composition may ask of the importer, whichever front it belongs to."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from cuvil.ir.build import Builder
from cuvil.ir.dims import Dim
from cuvil.ir.names import Value as SSAValue
from cuvil.ir.types import TensorType

__all__ = ["Cx", "Value"]

Value = Any  # an SSA value; None where it is absent


class Cx(Protocol):
    """One node under import.

    b: builds primitives with the node's location. where: the node, for messages.
    """

    b: Builder
    where: str

    def known_ints(self, value: SSAValue, what: str) -> list[Dim]:
        """The elements of an integer tensor; UnsupportedError when they depend on data."""

    def dims(self, value: SSAValue) -> tuple[Dim, ...]:
        """The extents of a value."""

    def type(self, value: SSAValue) -> TensorType:
        """The tensor type of a value."""

    def equal(self, a: Dim, b: Dim) -> None:
        """The extents must be equal; where one is a symbol of an input, a run checks it."""

    def require(self, a: Dim, b: Dim) -> None:
        """A run fails unless the extents are equal."""

    def fail(self, reason: str) -> NoReturn:
        """Raises UnsupportedError: a sound model asks for what is not implemented."""

    def bad(self, reason: str) -> NoReturn:
        """Raises ModelError: the model breaks the rules of its front."""
