"""Programs for particular extents beside the one for all: which graphs they are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from cuvil.errors import OptionError
from cuvil.extents import Extents
from cuvil.ir.dims import Dim, dim_max, dim_min, symbol
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type
from cuvil.ir.substitute import substituted

MOST = 64  # programs; each is compiled for itself

__all__ = ["bytes_from", "special_graphs"]

Special = list[tuple[Mapping[str, int], Graph]]


def special_graphs(graph: Graph, wanted: Mapping[str, Sequence[int]]) -> Special:
    """The graph for each combination of extents, with what is fixed in it.

    wanted: symbol -> its extents; "batch" is the first symbol at the front of an input where no
    symbol has that name. Raises OptionError for what cannot be.
    """
    fixed = {_symbol(graph, name): _extents(graph, name, values) for name, values in wanted.items()}
    if prod(map(len, fixed.values())) > MOST:
        raise OptionError(f"{graph.name}: more than {MOST} combinations of extents to specialise")
    rows = [dict(zip(fixed, values, strict=True)) for values in product(*fixed.values())]
    return [(row, substituted(graph, row)) for row in rows if row]


def _symbol(graph: Graph, name: str) -> str:
    known = graph.symbols()
    if name in known:
        return name
    heads = [tensor_type(v).dims[0] for v in graph.inputs if tensor_type(v).rank]
    found = [s for s in known if symbol(s) in heads]
    if name == "batch" and found:
        return found[0]
    raise OptionError(
        f"{graph.name}: cannot specialise '{name}'; the inputs' symbolic dims are "
        f"{', '.join(known) or 'none'}"
    )


def _extents(graph: Graph, name: str, values: Sequence[int]) -> list[int]:
    own = _symbol(graph, name)
    low, high = graph.bounds.get(own, (0, None))
    step = graph.declared.get(own, Extents()).multiple
    for value in values:
        if value < max(low, 1) or (high is not None and value > high) or value % step:
            allowed = Extents(max(low, 1), high, step)
            raise OptionError(f"{graph.name}: cannot specialise {own} = {value}: it is {allowed}")
    return list(dict.fromkeys(values))


def bytes_from(fixed: Mapping[str, int], size: Dim) -> Dim:
    """The arena of a program for fixed extents, 0 where an extent is smaller than that: more
    never needs less, so that what suffices for upper bounds suffices for all."""
    for name, value in fixed.items():
        size = size * dim_min(1, dim_max(0, symbol(name) - (value - 1)))
    return size
