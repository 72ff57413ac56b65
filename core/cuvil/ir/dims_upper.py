"""Upper bounds of dimensions as expressions: what an extent is at most, before a run finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cuvil.ir.dims import Dim, bounds, dim_max, dim_min, floor_scaled, fold, symbol, symbols
from cuvil.ir.dims_bounds import DEFAULT, Ranges

__all__ = ["Top", "upper_bound"]


class Top(NamedTuple):
    """A symbol's least value, and its greatest as an expression of other symbols (None: none)."""

    least: int
    most: Dim | None


class _Span(NamedTuple):
    """Two expressions that a value lies between; None is no bound."""

    low: Dim | None
    high: Dim | None

    @property
    def exact(self) -> bool:
        return self.low is not None and self.low == self.high


_ANY = _Span(None, None)


def upper_bound(dim: Dim, tops: Mapping[str, Top], ranges: Ranges = DEFAULT) -> Dim | None:
    """A bound of `dim` without the symbols of `tops`, or None where there is none.

    tops: bounds of symbols by expressions of symbols that stand before them in the mapping, or
    that it does not name. The result is `dim` itself where it names none of them.
    """
    if not any(name in tops for name in symbols(dim)):
        return dim
    spans: dict[str, _Span] = {}
    for name, top in tops.items():
        spans[name] = _Span(
            top.least, None if top.most is None else _span(top.most, spans, ranges).high
        )
    return _span(dim, spans, ranges).high


def _span(dim: Dim, spans: Mapping[str, _Span], ranges: Ranges) -> _Span:
    known = _Arithmetic(ranges)
    return fold(
        dim,
        const=lambda value: _Span(value, value),
        symbol=lambda name: spans.get(name) or _Span(symbol(name), symbol(name)),
        add=known.add,
        mul=known.mul,
        floordiv=known.floordiv,
        mod=known.mod,
        minimum=known.minimum,
        maximum=known.maximum,
        scaled=known.scaled,
    )


class _Arithmetic:
    """Interval arithmetic on expressions; where a sign is not known nothing is."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def at_least(self, dim: Dim | None, least: int) -> bool:
        if dim is None:
            return False
        low = bounds(dim, self.ranges)[0]
        return low is not None and low >= least

    def add(self, a: _Span, b: _Span) -> _Span:
        return _Span(_plus(a.low, b.low), _plus(a.high, b.high))

    def mul(self, a: _Span, b: _Span) -> _Span:
        if a.exact and b.exact:
            product = a.high * b.high  # type: ignore[operator]
            return _Span(product, product)
        if isinstance(b.low, int) and b.exact:
            a, b = b, a
        if isinstance(a.low, int) and a.exact:
            ends = [None if end is None else end * a.low for end in b]
            return _Span(*ends) if a.low >= 0 else _Span(*reversed(ends))
        if self.at_least(a.low, 0) and self.at_least(b.low, 0):
            low = a.low * b.low  # type: ignore[operator]
            return _Span(low, None if None in (a.high, b.high) else a.high * b.high)  # type: ignore[operator]
        return _ANY

    def floordiv(self, a: _Span, b: _Span) -> _Span:
        if a.exact and b.exact:
            quotient = a.high // b.high  # type: ignore[operator]
            return _Span(quotient, quotient)
        if b.exact and self.at_least(b.low, 1):
            return _Span(*(None if end is None else end // b.low for end in a))  # type: ignore[operator]
        if self.at_least(a.low, 0) and self.at_least(b.low, 0):
            return _Span(0, a.high)  # a divisor is not zero
        return _ANY

    def mod(self, a: _Span, b: _Span) -> _Span:
        if a.exact and b.exact:
            rest = a.high % b.high  # type: ignore[operator]
            return _Span(rest, rest)
        if not self.at_least(b.low, 0):
            return _ANY
        high = None if b.high is None else b.high - 1
        if self.at_least(a.low, 0) and a.high is not None:
            high = a.high if high is None else dim_min(a.high, high)
        return _Span(0, high)

    def minimum(self, a: _Span, b: _Span) -> _Span:
        low = None if None in (a.low, b.low) else dim_min(a.low, b.low)  # type: ignore[arg-type]
        return _Span(low, _either(dim_min, a.high, b.high))

    def maximum(self, a: _Span, b: _Span) -> _Span:
        high = None if None in (a.high, b.high) else dim_max(a.high, b.high)  # type: ignore[arg-type]
        return _Span(_either(dim_max, a.low, b.low), high)

    def scaled(self, a: _Span, numerator: int, denominator: int) -> _Span:
        scale = numerator / denominator
        return _Span(*(None if end is None else floor_scaled(end, scale) for end in a))


def _plus(a: Dim | None, b: Dim | None) -> Dim | None:
    return None if a is None or b is None else a + b


def _either(choose: object, a: Dim | None, b: Dim | None) -> Dim | None:
    """The tighter of two bounds of which one is enough."""
    if a is None or b is None:
        return a if b is None else b
    return choose(a, b)  # type: ignore[operator]
