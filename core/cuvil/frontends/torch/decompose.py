"""Which ATen operators torch takes apart before they are imported."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table

from cuvil.ops.aten.registry import find

__all__ = ["decompositions"]

_IN_PLACE = {
    "aten.complex.default",
    "aten.polar.default",
    "aten.diagonal_scatter.default",
}  # not what AOTAutograd takes


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Overload -> its decomposition, for all that torch can decompose and that have no record."""
    tables = {**decomposition_table, **core_aten_decompositions()}
    return {
        op: rule
        for op, rule in tables.items()
        if isinstance(op, torch._ops.OpOverload)
        and find(str(op)) is None
        and str(op) not in _IN_PLACE
    }
