"""Symbolic sizes of torch as dims: expressions of sympy over the symbols of a `ShapeEnv`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch.utils._sympy import functions as extra

from cuvil.errors import UnsupportedError
from cuvil.ir.dims import Dim, ceil_div, dim_max, dim_min, product, symbol

__all__ = ["bounds_of", "dim_of", "dims_of", "expression", "least_of", "range_of"]

_MOST = (1 << 63) - 1


def expression(value: Any) -> Any:
    """The sympy expression behind an int or SymInt, with what guards have found put in."""
    if isinstance(value, torch.SymInt):
        return value.node.expr
    return sympy.Integer(int(value))


def dim_of(value: Any) -> Dim:
    """An int or SymInt as a dim. UnsupportedError for an expression that dims do not have."""
    return int(value) if type(value) is int else _dim(expression(value))


def dims_of(values: Iterable[Any]) -> tuple[Dim, ...]:
    """Sizes as dims."""
    return tuple(map(dim_of, values))


def bounds_of(value: Any) -> dict[str, tuple[int, int | None]]:
    """Symbol -> (least, greatest or None) for the symbols of a SymInt, as its guards have it."""
    if not isinstance(value, torch.SymInt):
        return {}
    ranges = value.node.shape_env.var_to_range
    return {s.name: range_of(ranges.get(s)) for s in expression(value).free_symbols}


def least_of(value: Any) -> int:
    """What a number is at least: one that is no size may be less than 0."""
    if not isinstance(value, torch.SymInt):
        return int(value)
    interval = value.node.shape_env.bound_sympy(expression(value))
    return int(interval.lower) if interval.lower.is_Integer else -_MOST // 2


def range_of(interval: Any) -> tuple[int, int | None]:
    """(least, greatest or None) of an interval of torch's."""
    if interval is None:
        return 0, None
    low = int(interval.lower) if interval.lower.is_Integer else 0
    high = int(interval.upper) if interval.upper.is_Integer else _MOST
    return max(low, 0), None if high >= _MOST // 2 else high


def _dim(e: Any) -> Dim:
    if e.is_Integer:
        return int(e)
    if e.is_Symbol:
        return symbol(e.name)
    rule = _RULES.get(e.func)
    if rule is None:
        raise UnsupportedError(f"the size {e} is no expression that Cuvil has")
    found: Dim = rule(e)
    return found


def _each(function: Callable[..., Dim]) -> Callable[[Any], Dim]:
    return lambda e: function(*map(_dim, e.args))


def _power(e: Any) -> Dim:
    base, exponent = e.args
    if not exponent.is_Integer or exponent < 0:
        raise UnsupportedError(f"the size {e} is no expression that Cuvil has")
    return product([_dim(base)] * int(exponent))


def _index(dividend: Dim, divisor: Dim, modulus: Dim) -> Dim:
    return (dividend // divisor) % modulus


_RULES: dict[Any, Callable[[Any], Dim]] = {
    sympy.Add: lambda e: reduce(lambda a, b: a + b, map(_dim, e.args)),
    sympy.Mul: lambda e: reduce(lambda a, b: a * b, map(_dim, e.args)),
    sympy.Pow: _power,
    extra.PowByNatural: _power,
    sympy.Max: _each(dim_max),
    extra.Max: _each(dim_max),
    sympy.Min: _each(dim_min),
    extra.Min: _each(dim_min),
    extra.FloorDiv: _each(lambda a, b: a // b),
    extra.CleanDiv: _each(lambda a, b: a // b),
    extra.CeilDiv: _each(ceil_div),
    extra.Mod: _each(lambda a, b: a % b),
    extra.PythonMod: _each(lambda a, b: a % b),
    extra.ModularIndexing: _each(_index),
}
