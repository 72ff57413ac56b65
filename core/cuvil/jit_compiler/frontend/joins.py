"""Types that hold values of two types."""

from __future__ import annotations

import numpy as np

from cuvil.ir.py_types import Array, Element, Scalar, Type, category, numeric_join


def join_numbers(a: Type, b: Type) -> Type | None:
    """A number beside an element of a tensor may become one where it is of no higher category."""
    joined = numeric_join((a, b))
    if isinstance(joined, Element):
        plain = [kind for kind in (a, b) if not isinstance(kind, Element)]
        tensors = [kind for kind in (a, b) if isinstance(kind, Element)]
        most = max(map(category, tensors))
        if any(category(kind) > most for kind in plain) or len({t.dtype for t in tensors}) > 1:
            return None
    return joined


def join_arrays(a: Array, b: Array) -> Array | None:
    """Of one element type and rank; what is not true of both is not."""
    if (a.dtype, a.rank) != (b.dtype, b.rank):
        return None
    return Array(
        a.dtype,
        a.rank,
        a.contiguous and b.contiguous,
        a.writable and b.writable,
        a.fresh and b.fresh,
    )


def holds(kind: Scalar, number: object) -> bool:
    """Whether a literal is a value of a numpy type, as it stands."""
    if kind.dtype in "fd":
        return isinstance(number, int | float)
    if kind.dtype == "?":
        return isinstance(number, bool)
    limits = np.iinfo(kind.dtype)
    return isinstance(number, int) and bool(limits.min <= number <= limits.max)
