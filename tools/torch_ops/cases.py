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
    """All operators (or those with these names) in all element types that they take, type by
    type: a run that is stopped early has seen many operators."""
    ops = [op for op in op_db if not names or op.name in names or _name(op) in names]
    return [Case(_name(op), op, d) for d in DTYPES for op in ops if d in op.supported_dtypes("cpu")]


def _name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def fresh(samples: list[Sample]) -> list[Sample]:
    """Samples once more, in the strides that they have, as an operator may write into them."""
    return deepcopy(samples)
