"""Parameters and buffers as constants of the pool: their own memory, mapped, not copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cuvil.frontends.torch.types import element_of
from cuvil.ir.build import INLINE_LIMIT, Builder
from cuvil.ir.names import Value
from cuvil.ir.pool import Pool

__all__ = ["add_constant", "bytes_of", "constant_value"]


def bytes_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The dense row-major bytes of a tensor on the cpu: its own where it is dense."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if not plain.numel():
        return np.zeros(0, np.uint8)
    return plain.reshape(-1).view(torch.uint8).numpy()


def add_constant(pool: Pool, tensor: torch.Tensor) -> str:
    """The key of a tensor in the pool, which keeps its memory alive. Nobody may write to it."""
    return pool.add_mapped(bytes_of(tensor), element_of(tensor.dtype), tuple(tensor.shape)).key


def constant_value(b: Builder, tensor: torch.Tensor) -> Value:
    """A tensor in the graph: inline where it is small, else a reference."""
    key = add_constant(b.pool, tensor)
    small = tensor.numel() <= INLINE_LIMIT
    return b.const(b.pool.array(key)) if small else b.pooled(key)
