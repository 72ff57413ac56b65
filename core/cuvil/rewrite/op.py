"""`cuvil.op`: operations on traced tensors, for fusion patterns.

Every primitive of one result is here under its own name with its own attributes (see
`cuvil-opt --list`); where the name is a Python keyword, with an underscore behind (`and_`).
Functions below accept what users of array libraries expect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cuvil.ops
from cuvil.ir.record import PRIMITIVES
from cuvil.rewrite.traced import Tensor, apply, axis_of, matmul

__all__ = ["layer_norm", "linear", "log_softmax", "matmul", "mean", "rms_norm", "softmax"]

assert cuvil.ops is not None  # importing it registers the primitives


def __getattr__(name: str) -> Callable[..., Tensor]:
    if name.startswith("__") or name.rstrip("_") not in PRIMITIVES:
        raise AttributeError(f"cuvil.op has no operation '{name}'")
    return partial(apply, name.rstrip("_"))


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Softmax along one axis."""
    return apply("softmax", x, axis=axis_of(x, axis))


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of softmax along one axis."""
    return apply("log_softmax", x, axis=axis_of(x, axis))


def mean(x: Tensor, axis: int = -1, keepdims: bool = False) -> Tensor:
    """The mean along one axis."""
    return apply("reduce", x, kind="mean", axes=(axis_of(x, axis),), keepdims=keepdims)


def layer_norm(x: Tensor, *scale_and_bias: Tensor, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """Layer norm over the axes from `axis` on, with a scale and a bias if given."""
    return apply("layer_norm", x, *scale_and_bias, axis=axis_of(x, axis), epsilon=epsilon)


def rms_norm(x: Tensor, *scale: Tensor, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """RMS norm over the axes from `axis` on, with a scale if given."""
    return apply("rms_norm", x, *scale, axis=axis_of(x, axis), epsilon=epsilon)


def linear(x: Tensor, weights: Tensor, bias: Any = None) -> Tensor:
    """x @ weights + bias."""
    result = matmul(x, weights)
    return result if bias is None else result + bias
