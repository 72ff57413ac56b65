"""`dynamic_shapes`: what a caller promises of symbols, resolved against a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping

from cuvil.errors import OptionError, ShapeMismatchError
from cuvil.extents import Dynamic, Extents
from cuvil.ir.dims import Dim, SymDim, symbol, symbols
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.options import Options

__all__ = ["carried", "declared_extents", "promised"]


def promised(graph: Graph, options: Options) -> Graph:
    """A graph with what the options say of its symbols. Errors as `declared_extents`."""
    types = {n: tensor_type(v) for n, v in zip(graph.input_names, graph.inputs, strict=True)}
    for name, (least, most) in options.bounds.items():
        graph.narrow(name, least, most)
    graph.declare(declared_extents(options.dynamic, types, graph.name))
    return graph


def declared_extents(
    dynamic: Dynamic, types: Mapping[str, TensorType], file: str
) -> dict[str, Extents]:
    """Symbol -> its promised extents. types: of the inputs.

    OptionError for a name that is neither a symbol nor an input, or an axis that the model has
    not; ShapeMismatchError for an axis with a fixed extent.
    """
    known = dict.fromkeys(s for t in types.values() for d in t.dims for s in symbols(d))
    found: dict[str, Extents] = {}
    for name, value in dynamic.items():
        if isinstance(value, Extents):
            if name not in known:
                raise OptionError(
                    f"{file}: dynamic shape '{name}': the inputs' symbolic dims are "
                    f"{', '.join(known) or 'none'}"
                )
            _note(found, name, value, file)
            continue
        if name not in types:
            raise OptionError(
                f"{file}: dynamic shape '{name}': the inputs are {', '.join(types)}, their "
                f"symbolic dims {', '.join(known) or 'none'}"
            )
        for axis, extents in value.items():
            own = _symbol_at(types[name], name, axis, file)
            if isinstance(extents, str):
                _must_be(own, extents, f"{file}: dynamic shape of input '{name}', axis {axis}")
            else:
                _note(found, own, extents, file)
    return found


def _symbol_at(kind: TensorType, name: str, axis: int, file: str) -> str:
    where = f"{file}: dynamic shape of input '{name}', axis {axis}"
    if not -kind.rank <= axis < kind.rank:
        raise OptionError(f"{where}: the input has rank {kind.rank}")
    dim = kind.dims[axis]
    if not isinstance(dim, SymDim):
        raise ShapeMismatchError(f"{where}: the model fixes it to {dim}")
    names = symbols(dim)
    if len(names) != 1 or dim != symbol(names[0]):
        raise OptionError(f"{where} is {dim}: give its symbols instead")
    return names[0]


def _must_be(own: str, name: str, where: str) -> None:
    if own != name:
        raise OptionError(f"{where}: the model calls it '{own}', not '{name}'")


def _note(found: dict[str, Extents], name: str, value: Extents, file: str) -> None:
    if found.setdefault(name, value) != value:
        raise OptionError(
            f"{file}: dynamic shape '{name}' is {value} in one place, {found[name]} in another"
        )


def carried(
    declared: Mapping[str, Extents], equal: Mapping[str, Dim], where: Mapping[str, str]
) -> dict[str, Extents]:
    """What is promised of the symbols that stay when others turn out to be equal to expressions.

    where: the node that needs symbol == expression. ShapeMismatchError where that breaks a promise.
    """
    found = {name: e for name, e in declared.items() if name not in equal}
    for name, dim in equal.items():
        extents = declared.get(name)
        if extents is None:
            continue
        at = where.get(name, "the model")
        if isinstance(dim, int):
            raise ShapeMismatchError(
                f"{at} needs {name} = {dim}; dynamic_shapes promises {name} = {extents}"
            )
        other = symbols(dim)[0]
        if dim != symbol(other) or found.setdefault(other, extents) != extents:
            said = f" and {other} = {found[other]}" if other in found else ""
            raise ShapeMismatchError(
                f"{at} needs {name} = {dim}; dynamic_shapes promises {name} = {extents}{said}: "
                f"say the same of both, or of {dim} only"
            )
    return found
