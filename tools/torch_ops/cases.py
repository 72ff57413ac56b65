"""Operators of torch's database and their samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

__all__ = ["DTYPES", "Case", "Sample", "cases", "fresh"]

Sample = tuple[Any, list[Any], dict[str, Any]]  # first argument, others, keywords

DTYPES = (torch.float32, torch.int64, torch.bool)


@dataclass(frozen=True)
class Case:
    """An operator with samples of one element type. name: with the database's variant."""

    name: str
    op: Any
    dtype: torch.dtype

    @property
    def label(self) -> str:
        """The name and the element type."""
        return f"{self.name} {str(self.dtype).removeprefix('torch.')}"

    def samples(self, most: int | None) -> Iterator[Sample]:
        """At most so many samples, the same every time."""
        torch.manual_seed(0)
        found = self.op.sample_inputs("cpu", self.dtype, requires_grad=False)
        for sample in islice(found, most):
            yield sample.input, list(sample.args), dict(sample.kwargs)


def cases(names: Sequence[str] = ()) -> list[Case]:
    """All operators (or those with these names) in all element types that they take."""
    found = []
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if names and name not in names and op.name not in names:
            continue
        found += [Case(name, op, d) for d in DTYPES if d in op.supported_dtypes("cpu")]
    return found


def fresh(samples: list[Sample]) -> list[Sample]:
    """Samples once more, in the strides that they have, as an operator may write into them."""
    return deepcopy(samples)
