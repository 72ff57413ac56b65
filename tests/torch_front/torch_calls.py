"""Calls through torch.compile(backend="cuvil"), beside eager."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch

__all__ = ["compiled", "same"]


def compiled(model: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The model through the backend, where nothing may run in eager."""
    dynamic = options.pop("dynamic", None)
    return torch.compile(
        model, backend="cuvil", fullgraph=True, dynamic=dynamic,
        options={"fallback": "error", **options},
    )  # fmt: skip


def same(model: Callable[..., Any], *args: Any, check_stride: bool = True, **options: Any) -> Any:
    """Compiled and eager give equal results, and leave equal arguments behind.

    Both are given copies with the strides of the arguments, and what shares memory there shares it.
    """
    mine, reference = deepcopy(args), deepcopy(args)
    wanted = model(*reference)
    got = compiled(model, **options)(*mine)
    torch.testing.assert_close(
        got, wanted, rtol=1e-4, atol=1e-5, check_stride=check_stride, equal_nan=True
    )
    torch.testing.assert_close(mine, reference, equal_nan=True)
    return got
