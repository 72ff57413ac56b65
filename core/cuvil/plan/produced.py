"""Extents that only a run finds: what is known of them before, for memory and for outputs."""

from __future__ import annotations

from cuvil.errors import UnsupportedError
from cuvil.ir.build import location_name
from cuvil.ir.dims import Dim, bounds, dim_max, symbol
from cuvil.ir.dims_upper import Top
from cuvil.ir.graph import Graph
from cuvil.ir.names import Operation
from cuvil.ir.record import attrs_of
from cuvil.plan.conditions import Ranges
from cuvil.plan.steps import Bind, Check, Ref, Step

ENDLESS = 1 << 62  # iterations of a loop without a trip count
MOST = 1 << 46  # no extent is greater: the runtime's own limit on bytes

__all__ = ["ENDLESS", "MOST", "bind_steps", "ranges_of", "refuse_unbounded", "tops_of"]


def tops_of(graph: Graph) -> dict[str, Top]:
    """What bounds the symbols that are not the inputs': loop counters and produced extents."""
    tops: dict[str, Top] = {}
    for op in graph.ops():
        if op.name == "cuvil.loop":
            attrs = attrs_of(op)
            last = None if attrs.trip is None else dim_max(attrs.trip - 1, 0)
            tops[attrs.symbol] = Top(0, last)
        elif op.name == "cuvil.bind":
            attrs = attrs_of(op)
            tops[attrs.symbol] = Top(attrs.least, attrs.most)
    return tops


def ranges_of(graph: Graph, tops: dict[str, Top]) -> Ranges:
    """Bounds of all symbols as numbers."""
    ranges = dict(graph.bounds)
    for name, top in tops.items():
        ranges[name] = (top.least, None if top.most is None else bounds(top.most, ranges)[1])
    return ranges


def bind_steps(op: Operation, source: Ref) -> list[Step]:
    """Binds a symbol to what lies at `source`; a bound that is an expression is checked."""
    attrs = attrs_of(op)
    most: Dim | None = attrs.most
    site = f"bind\t{location_name(op)}: the extent {attrs.symbol} that it gives"
    limit = most if isinstance(most, int) else MOST
    steps: list[Step] = [Bind(attrs.symbol, source, attrs.least, limit, site)]
    if most is not None and not isinstance(most, int):
        steps.append(Check(most, symbol(attrs.symbol), False, f"{site} is at most {most}"))
    return steps


def refuse_unbounded(size: Dim, space: str) -> None:
    """Devices' memory is planned: UnsupportedError for a size without an upper bound."""
    raise UnsupportedError(f"{size} bytes, which have no upper bound, cannot lie in {space} memory")
