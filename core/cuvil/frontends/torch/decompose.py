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

_WITH_DROPOUT = ("gru", "lstm", "rnn", "attention")  # parts of which, if any, draw numbers


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Overload -> its decomposition, for all that torch can decompose and that have no record.

    What draws random numbers stays whole: in parts it would draw others than in eager.
    """
    tables = {**decomposition_table, **core_aten_decompositions()}
    return {
        op: rule
        for op, rule in tables.items()
        if isinstance(op, torch._ops.OpOverload)
        and find(str(op)) is None
        and str(op) not in _IN_PLACE
        and not _draws(op)
    }


def _draws(op: torch._ops.OpOverload) -> bool:
    """Whether an overload is itself a draw of random numbers."""
    named = any(part in str(op) for part in _WITH_DROPOUT)
    return torch.Tag.nondeterministic_seeded in op.tags and not named
