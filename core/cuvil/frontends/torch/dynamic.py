"""`dynamic_shapes` for torch.export: its dims, samples that fit them, and names for its symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim as ExportDim

from cuvil.errors import InputError, OptionError, ShapeMismatchError
from cuvil.extents import Dynamic, Extents
from cuvil.frontends.torch.dims import dim_of
from cuvil.ir.dims import Dim, SymDim, symbol, symbols

__all__ = ["Axes", "axes_of", "export_dims", "fitting", "names_of_rest", "symbol_names"]

Axes = Mapping[str, Mapping[int, str]]  # input -> {axis: the name of its symbol}


def axes_of(
    dynamic: Dynamic, samples: Mapping[str, Any], name: str
) -> tuple[Axes, dict[str, Extents]]:
    """Which axes are symbols, and what is promised of each symbol.

    samples: of the inputs. OptionError for an input or axis that there is not, or a symbol that
    no axis has.
    """
    axes: dict[str, dict[int, str]] = {}
    promised: dict[str, Extents] = {}
    for key, value in dynamic.items():
        if isinstance(value, Extents):
            continue
        rank = _rank(samples, key, name)
        for axis, said in value.items():
            if not -rank <= axis < rank:
                raise OptionError(f"{name}: dynamic shape of '{key}', axis {axis}: it has {rank}")
            own = said if isinstance(said, str) else f"{key}_{axis % rank}"
            axes.setdefault(key, {})[axis % rank] = own
            promised[own] = promised.get(own, Extents()) if isinstance(said, str) else said
    for key, value in dynamic.items():
        if isinstance(value, Extents):
            if key not in promised:
                known = ", ".join(promised) or "none"
                raise OptionError(f"{name}: no axis is called '{key}'; dynamic axes are {known}")
            promised[key] = value
    return axes, promised


def _rank(samples: Mapping[str, Any], key: str, name: str) -> int:
    if not isinstance(samples.get(key), torch.Tensor):
        known = ", ".join(k for k, v in samples.items() if isinstance(v, torch.Tensor))
        raise OptionError(f"{name}: dynamic shape of '{key}': the tensors are {known}")
    rank: int = samples[key].dim()
    return rank


def export_dims(axes: Axes, promised: Mapping[str, Extents]) -> dict[str, dict[int, Any]]:
    """As torch.export takes them: a multiple is a dim times a number, so that torch can prove what
    follows from it."""
    dims = {name: _export_dim(name, extents) for name, extents in promised.items()}
    return {key: {axis: dims[own] for axis, own in row.items()} for key, row in axes.items()}


def _export_dim(name: str, extents: Extents) -> Any:
    least, most, step = extents
    bounds = {"min": least // step} | ({} if most is None else {"max": most // step})
    return ExportDim(name, **bounds) if step == 1 else step * ExportDim(f"_{name}", **bounds)


def fitting(
    axes: Axes, promised: Mapping[str, Extents], samples: Mapping[str, Any]
) -> dict[str, Any]:
    """Samples whose dynamic axes have extents within the promises, another one for each symbol, at
    least 2, and twice what divides them: torch takes what is 0 or 1 as fixed."""
    sizes: dict[str, int] = {}
    for key, row in axes.items():
        for axis, own in row.items():
            have = samples[key].shape[axis]
            sizes.setdefault(own, _size(own, promised[own], have, set(sizes.values())))
    return {key: _resized(x, axes.get(key, {}), sizes) for key, x in samples.items()}


def _size(name: str, extents: Extents, have: int, taken: set[int]) -> int:
    least, most, step = extents
    start = max(least, 2 * step)
    if most is not None and most < start:
        raise ShapeMismatchError(f"dynamic shape '{name}' = {extents} is no range: fix it instead")
    if have >= start and (most is None or have <= most) and have % step == 0:
        return have
    options = [start + k * step for k in range(1, 9)]
    good = [n for n in options if most is None or n <= most]
    return next((n for n in good if n not in taken), start)


def _resized(x: Any, row: Mapping[int, str], sizes: Mapping[str, int]) -> Any:
    for axis, own in row.items():
        if x.shape[axis] == 0:
            raise InputError(f"an example for '{own}' has extent 0: give one that is not empty")
        index = torch.arange(sizes[own]) % x.shape[axis]
        x = x.index_select(axis, index)
    return x


def symbol_names(
    axes: Axes, promised: Mapping[str, Extents], shapes: Mapping[str, Sequence[Any]]
) -> tuple[dict[str, Dim], dict[str, Extents]]:
    """What stands for torch's symbols: the names of the axes; and what is promised of those that
    the graph still has. shapes: of the inputs, as torch sees them."""
    env: dict[str, Dim] = {}
    kept: dict[str, Extents] = {}
    for key, row in axes.items():
        for axis, own in row.items():
            dim = dim_of(shapes[key][axis])
            if not isinstance(dim, SymDim):
                continue
            (inner,) = symbols(dim)
            step = promised[own].multiple
            env.setdefault(inner, symbol(own) if dim == symbol(inner) else symbol(own) // step)
            kept[own] = promised[own]
    return env, kept


def names_of_rest(shapes: Mapping[str, Sequence[Any]], env: Mapping[str, Dim]) -> dict[str, Dim]:
    """Names for the symbols that nobody has named: by the first input and axis that they are."""
    found: dict[str, Dim] = {}
    for key, shape in shapes.items():
        for axis, extent in enumerate(shape):
            dim = dim_of(extent)
            for inner in symbols(dim):
                if inner not in env and dim == symbol(inner):
                    found.setdefault(inner, symbol(f"{key}_{axis}"))
    return found
