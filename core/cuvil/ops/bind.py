"""Binding a graph's symbols to the extents of the arrays that a caller passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuvil.errors import DTypeError, InputError, ShapeMismatchError
from cuvil.ir.dims import Dim, SymDim, evaluate, symbol, symbols
from cuvil.ir.types import TensorType

Array = np.ndarray[Any, Any]


def bind_symbols(types: Mapping[str, TensorType], feeds: Mapping[str, Array]) -> dict[str, int]:
    """The value of every symbol that stands alone as an input's dimension.

    Dimensions that are expressions are checked once their symbols are known. Raises InputError
    for a missing or unknown name, DTypeError, ShapeMismatchError naming both values.
    """
    _check_names(types, feeds)
    env: dict[str, int] = {}
    pairs = [(n, i, d) for n, t in types.items() for i, d in enumerate(t.dims)]
    for name, i, dim in pairs:
        for free in symbols(dim):
            if dim == symbol(free):
                env.setdefault(free, feeds[name].shape[i])
    for name, i, dim in pairs:
        _check_extent(name, i, dim, feeds[name].shape[i], env)
    return env


def _check_names(types: Mapping[str, TensorType], feeds: Mapping[str, Array]) -> None:
    unknown = [name for name in feeds if name not in types]
    missing = [name for name in types if name not in feeds]
    if unknown or missing:
        raise InputError(
            f"inputs are {_quoted(list(types))}"
            + (f"; unknown: {_quoted(unknown)}" if unknown else "")
            + (f"; missing: {_quoted(missing)}" if missing else "")
        )
    for name, kind in types.items():
        value = feeds[name]
        if value.dtype != kind.dtype.numpy:
            raise DTypeError(f"input '{name}' is {value.dtype}, the model takes {kind.dtype.name}")
        if value.ndim != kind.rank:
            raise ShapeMismatchError(
                f"input '{name}' has rank {value.ndim}, the model takes rank {kind.rank}"
            )


def _check_extent(name: str, axis: int, dim: Dim, extent: int, env: Mapping[str, int]) -> None:
    if isinstance(dim, SymDim) and any(s not in env for s in symbols(dim)):
        raise ShapeMismatchError(
            f"input '{name}': dimension {axis} is {dim}, of which a symbol is no input's dimension"
        )
    expected = evaluate(dim, env)
    if expected != extent:
        said = f"{dim} = {expected}" if isinstance(dim, SymDim) else str(expected)
        raise ShapeMismatchError(
            f"input '{name}': dimension {axis} is {extent}, the model takes {said}"
        )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{n}'" for n in names)
