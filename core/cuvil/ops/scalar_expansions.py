"""Activations as compositions of other scalar functions: one definition for every evaluator.

An expansion is a function of a `Namespace` and its operands. `s.mul(x, 2.0)` applies the row
`mul`; a plain number becomes a constant of the operand's type. The numpy meaning, the LLVM
emitters and any other evaluator (a graph builder, a printer) are subclasses of `Namespace`.

Formulas are those of the ONNX operators of the same name, rearranged where the textbook form
overflows (softplus, mish) or loses digits (gelu_tanh as x times a sigmoid).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

__all__ = ["Namespace"]

Value = Any  # what an evaluator computes with: an array, an SSA value, a tree


class Namespace(ABC):
    """Scalar functions as methods: `s.exp(x)` is `s.apply("exp", x)`."""

    @abstractmethod
    def apply(self, name: str, *args: Value | float, **attrs: Any) -> Value:
        """The scalar function `name` of `args`; a number stands for a constant."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self.apply, name)


def relu(s: Namespace, x: Value) -> Value:
    """max(x, 0), NaN stays NaN."""
    return s.select(s.lt(x, 0), 0, x)


def leaky_relu(s: Namespace, x: Value, alpha: float) -> Value:
    """x below zero is scaled by alpha."""
    return s.select(s.lt(x, 0), s.mul(x, alpha), x)


def thresholded_relu(s: Namespace, x: Value, alpha: float) -> Value:
    """x above alpha, else 0; NaN stays NaN."""
    return s.select(s.le(x, alpha), 0, x)


def elu(s: Namespace, x: Value, alpha: float) -> Value:
    """alpha * (e**x - 1) below zero."""
    return s.select(s.lt(x, 0), s.mul(s.expm1(x), alpha), x)


def selu(s: Namespace, x: Value, alpha: float, gamma: float) -> Value:
    """gamma * elu(x, alpha)."""
    return s.mul(s.select(s.lt(x, 0), s.mul(s.expm1(x), alpha), x), gamma)


def celu(s: Namespace, x: Value, alpha: float) -> Value:
    """alpha * (e**(x / alpha) - 1) below zero."""
    return s.select(s.lt(x, 0), s.mul(s.expm1(s.div(x, alpha)), alpha), x)


def gelu(s: Namespace, x: Value) -> Value:
    """x / 2 * (1 + erf(x / sqrt 2))."""
    half = s.mul(x, 0.5)
    return s.add(s.mul(half, s.erf(s.mul(x, 0.7071067811865476))), half)


def gelu_tanh(s: Namespace, x: Value) -> Value:
    """x / 2 * (1 + tanh(u)) is x * sigmoid(2u), u = sqrt(2 / pi) * (x + 0.044715 x**3)."""
    cubic = s.add(s.mul(s.mul(x, x), 0.07135481627260025), 1.5957691216057308)
    return s.mul(x, s.sigmoid(s.mul(x, cubic)))


def silu(s: Namespace, x: Value) -> Value:
    """x * sigmoid(x)."""
    return s.mul(x, s.sigmoid(x))


def softplus(s: Namespace, x: Value) -> Value:
    """log(1 + e**x) as max(x, 0) + log1p(e**-|x|)."""
    return s.add(s.max(x, 0), s.log1p(s.exp(s.neg(s.abs(x)))))


def softsign(s: Namespace, x: Value) -> Value:
    """x / (1 + |x|)."""
    return s.div(x, s.add(s.abs(x), 1))


def mish(s: Namespace, x: Value) -> Value:
    """x * tanh(softplus(x)); with e = e**x and n = e * (e + 2), tanh(softplus(x)) = n / (n + 2)."""
    e = s.exp(s.min(x, 20))  # n / (n + 2) rounds to 1 from here on
    n = s.mul(e, s.add(e, 2))
    return s.mul(x, s.div(n, s.add(n, 2)))


def hardsigmoid(s: Namespace, x: Value, alpha: float, beta: float) -> Value:
    """max(0, min(1, alpha * x + beta))."""
    return s.max(s.min(s.add(s.mul(x, alpha), beta), 1), 0)


def hardswish(s: Namespace, x: Value) -> Value:
    """x * hardsigmoid(x, 1/6, 1/2)."""
    return s.mul(x, s.hardsigmoid(x, alpha=1 / 6, beta=0.5))


def shrink(s: Namespace, x: Value, lambd: float, bias: float) -> Value:
    """x + bias below -lambd, x - bias above lambd, else 0 (NaN too)."""
    upper = s.select(s.gt(x, lambd), s.sub(x, bias), 0)
    return s.select(s.lt(x, -lambd), s.add(x, bias), upper)
