"""Extents at which what has symbolic dims is timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cuvil.extents import Extents
from cuvil.ir.dims import Dim, evaluate, symbols
from cuvil.plan.plan import Plan, Port

__all__ = ["Sample", "sample_of", "size_at", "zeros_at"]

Sample = Mapping[str, int]


def sample_of(plan: Plan) -> dict[str, int]:
    """The middle of each symbol's range; empty unless every range has both ends."""
    found = {}
    for name, (low, high) in zip(plan.symbols, plan.bounds, strict=True):
        if high is None:
            return {}
        step = plan.declared.get(name, Extents()).multiple
        middle = (max(low, 1) + high) // 2 // step * step
        found[name] = middle if middle >= low else high
    return found


def size_at(dim: Dim, sample: Sample) -> int | None:
    """An extent there; None where it has other symbols."""
    known = all(name in sample for name in symbols(dim))
    return evaluate(dim, dict(sample)) if known else None


def zeros_at(ports: Sequence[Port], sample: Sample) -> list[np.ndarray]:
    """Zeros for every input."""
    shapes = [[size_at(d, sample) or 0 for d in port.type.dims] for port in ports]
    return [np.zeros(s, p.type.dtype.numpy) for s, p in zip(shapes, ports, strict=True)]
