"""What the record of an ONNX operator may ask of the importer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from cuvil.ir.dims import Dim, SymDim
from cuvil.ir.names import Region
from cuvil.ir.names import Value as SSAValue
from cuvil.ir.types import TensorType
from cuvil.ops.compose import context as compose

__all__ = ["Cx", "Value"]

Value = Any  # an SSA value; a tuple of values for a sequence; None for an absent or empty optional


class Cx(compose.Cx, Protocol):
    """One node under import.

    b: folds what is known at compile time at once. op: the node's operator; opset: the version of
    its domain that the model asks for; outputs: for each output whether anything can use it.
    """

    op: str
    opset: int
    outputs: Sequence[bool]

    def known(self, value: SSAValue | None) -> np.ndarray | None:
        """The value where the compiler knows it: numbers, or an object array of Dims."""

    def tensor(self, attribute: Any) -> SSAValue:
        """The constant that a tensor attribute holds."""

    def dtype(self, code: int) -> str:
        """The element type of an ONNX data type code; UnsupportedError when there is none."""

    def new_symbol(self, hint: str) -> SymDim:
        """A fresh symbol, for an extent that only a run can tell."""

    def new_bounded(self, hint: str, most: Dim | None) -> SymDim:
        """A fresh symbol of at most `most` (None: no bound), for `bind_to` or a loop's counter."""

    def bind_to(self, value: SSAValue, symbol: SymDim) -> None:
        """From here on the symbol is the element of an i64 tensor of rank 0."""

    def upper(self, dim: Dim) -> Dim | None:
        """An upper bound of an extent by symbols of the inputs alone; None where there is none."""

    def inner(self, dim: Dim) -> bool:
        """Whether an extent is known in a finished region only."""

    def close(self, symbol: SymDim) -> None:
        """Says that a loop's counter means nothing outside of its finished region."""

    def extend(self, region: Region, build: Callable[[], Sequence[SSAValue]]) -> None:
        """Makes a finished region yield what `build()` gives at its end, too."""

    def bind(self, value: SSAValue, hint: str, least: int = 0, most: Dim | None = None) -> Dim:
        """The only element of an integer tensor as an extent: found by the run, where the compiler
        does not know it. A run fails where it is less than `least` or more than `most`."""

    def assume(self, dim: Dim, least: int, most: int | None) -> None:
        """A run checks that `dim` lies in these bounds, where one input symbol decides it."""

    def at_least(self, a: Dim, b: Dim) -> bool:
        """Whether a >= b is proved for all values of the symbols within their bounds."""

    def inline(self, graph: Any, *args: Value) -> tuple[Value, ...]:
        """Imports a subgraph in place, its inputs bound to `args`; gives its outputs."""

    def expand(
        self, body: Any, values: Sequence[Value], attributes: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        """What the body of an operator, an onnx.FunctionProto or its text, gives for these inputs
        (None: absent) and attributes. OptionError where it is not a body."""

    def declared(self, i: int) -> tuple[str | None, tuple[Dim, ...] | None] | None:
        """What the model says of output i: element type and extents, None where it is silent."""

    def region(
        self, types: Sequence[TensorType], build: Callable[..., Sequence[SSAValue]]
    ) -> tuple[Region, tuple[TensorType, ...]]:
        """A region whose arguments have these types, and the types it yields.

        `build(*args)` builds its body with `b` and gives the values it yields.
        """

    def branches(
        self, *builds: Callable[[], Sequence[SSAValue]]
    ) -> list[tuple[Region, tuple[TensorType, ...]]]:
        """As `region`, for regions without arguments of which one runs."""

    def discard(self, region: Region) -> None:
        """Drops a region that was built and is not used."""

    def inputs_of(self, value: SSAValue) -> tuple[str, ...]:
        """Names of the graph's inputs (or "" for a region's) whose elements decide a value."""

    def needs(self, value: SSAValue, what: str) -> NoReturn:
        """Raises UnsupportedError: `what` must be known at compile time and depends on a value."""
