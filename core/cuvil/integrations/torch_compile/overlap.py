"""Calls in which an argument that is written to shares memory with another one.

A compiled graph computes results first and writes to its arguments afterwards, so that what is read
through another argument would be as it was before. Such a call runs in eager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch

__all__ = ["apart", "overlapping"]

_WORK = 1000  # steps to tell whether strided tensors meet; more means that they may
_AS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def apart(
    compiled: Callable[..., Any], eager: Callable[..., Any], written: Collection[int]
) -> Callable[..., Any]:
    """`compiled`, or `eager` where an argument at one of these places overlaps another one."""

    def call(*args: Any) -> Any:
        run = eager if overlapping(args, written) else compiled
        return run(*args)

    return call


def overlapping(args: Sequence[Any], written: Collection[int]) -> tuple[int, int] | None:
    """The places of an argument that is written to and of another one that has elements in the same
    memory, if there are any."""
    tensors = [(k, x) for k, x in enumerate(args) if isinstance(x, torch.Tensor) and x.numel()]
    by_storage: dict[int, list[int]] = {}
    for k, x in tensors:
        by_storage.setdefault(x.untyped_storage().data_ptr(), []).append(k)
    for places in by_storage.values():
        for k in written if len(places) > 1 else ():
            for other in places if k in places else ():
                if other != k and _meet(args[k], args[other]):
                    return k, other
    return None


def _meet(x: torch.Tensor, y: torch.Tensor) -> bool:
    try:
        return bool(np.shares_memory(_bytes(x), _bytes(y), max_work=_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _bytes(x: torch.Tensor) -> Any:
    """A tensor as numpy sees its memory; numpy lacks some of torch's types."""
    kind = _AS.get(x.element_size())
    return (x.detach() if kind is None else x.detach().view(kind)).numpy()
