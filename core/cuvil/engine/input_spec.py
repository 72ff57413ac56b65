"""`input_spec`: rows (name, dtype, shape) that fix dims of a model's inputs, checked against it."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.errors import DTypeError, InputError, ShapeMismatchError
from cuvil.frontends.onnx.model import read_graph
from cuvil.frontends.onnx.opener import OpenedModel
from cuvil.frontends.onnx.shapes import input_types
from cuvil.ir.dims import Dim, SymDim, symbol, symbols
from cuvil.ir.types import TensorType

Row = tuple[str, str, tuple[int | str | None, ...]]


def dims_of_spec(opened: OpenedModel, spec: Sequence[Row]) -> dict[str, int]:
    """Symbol -> extent that the rows of a spec fix; a dim that is no number stays as it is.

    InputError for a name the model has not, DTypeError and ShapeMismatchError where it differs.
    """
    if not spec:
        return {}
    inputs = [v for v in read_graph(opened).graph.inputs if v.const_value is None]
    types, _ = input_types(inputs, {}, opened.name)
    fixed: dict[str, int] = {}
    for name, dtype, shape in spec:
        if name not in types:
            known = ", ".join(types)
            raise InputError(f"input_spec: no input is called '{name}'; there are: {known}")
        _check(name, dtype, shape, types[name])
        for axis, extent in enumerate(shape):
            if isinstance(extent, int):
                _fix(fixed, f"input_spec: '{name}': axis {axis}", types[name].dims[axis], extent)
    return fixed


def _check(name: str, dtype: str, shape: Sequence[int | str | None], declared: TensorType) -> None:
    if dtype not in ("", declared.dtype.label, declared.dtype.name):
        raise DTypeError(f"input_spec: '{name}' is {dtype}, the model takes {declared.dtype.label}")
    if len(shape) != declared.rank:
        raise ShapeMismatchError(
            f"input_spec: '{name}' has rank {len(shape)}, the model takes rank {declared.rank}"
        )


def _fix(fixed: dict[str, int], where: str, dim: Dim, extent: int) -> None:
    if not isinstance(dim, SymDim):
        if dim != extent:
            raise ShapeMismatchError(f"{where} is {extent}, the model takes {dim}")
        return
    free = symbols(dim)
    if len(free) != 1 or dim != symbol(free[0]):
        raise ShapeMismatchError(f"{where} is {dim}: give its symbols by dims= instead")
    if fixed.setdefault(free[0], extent) != extent:
        raise ShapeMismatchError(f"{where} is {extent}, but {dim} is {fixed[free[0]]} elsewhere")
