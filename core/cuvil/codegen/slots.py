"""Run-time slots of dimension expressions: which number lies where in `frame->dims`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuvil.ir.dims import Dim, symbol, symbols


class SlotTable:
    """Input symbols first (in binding order), then everything else by first use.

    inputs: symbols that the caller's shapes bind. An expression of those alone is *derived* and
    computed once per shape; one that mentions another symbol (a loop counter, a produced extent)
    is computed again each time that symbol is bound.
    """

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self._slots: dict[str, int] = {name: i for i, name in enumerate(inputs)}
        self._exprs: list[Dim | str] = list(inputs)

    def of_symbol(self, name: str) -> int:
        """The slot of a bare symbol."""
        return self._slot(name, name)

    def of(self, expr: Dim) -> int:
        """The slot that holds the value of a (symbolic) expression."""
        names = symbols(expr)
        if len(names) == 1 and expr == symbol(names[0]):
            return self.of_symbol(names[0])
        for name in names:
            self.of_symbol(name)
        return self._slot(f"={expr}", expr)

    def _slot(self, key: str, expr: Dim | str) -> int:
        if key not in self._slots:
            self._slots[key] = len(self._exprs)
            self._exprs.append(expr)
        return self._slots[key]

    def encode(self, expr: Dim) -> int:
        """As the ABI writes an extent: the literal, or -(slot) - 1."""
        return expr if isinstance(expr, int) else -self.of(expr) - 1

    @property
    def count(self) -> int:
        return len(self._exprs)

    def derived(self) -> Iterator[tuple[int, Dim]]:
        """(slot, expression) of all that follows from the inputs' symbols alone."""
        known = set(self.inputs)
        for slot, expr in self._expressions():
            if known.issuperset(symbols(expr)):
                yield slot, expr

    def depending_on(self, name: str) -> Iterator[tuple[int, Dim]]:
        """(slot, expression) of all that must be computed again when `name` is bound."""
        for slot, expr in self._expressions():
            if name in symbols(expr):
                yield slot, expr

    def _expressions(self) -> Iterator[tuple[int, Dim]]:
        for slot, expr in enumerate(self._exprs):
            if not isinstance(expr, str):
                yield slot, expr
