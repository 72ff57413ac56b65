"""ai.onnx.preview.training: one step of an optimiser is a function like any other."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op

TRAINING = "ai.onnx.preview.training"
EPSILON = 9.999999974752427e-07  # 1e-6 in float32


def _groups(cx: Cx, values: Sequence[Value], kinds: int) -> list[tuple[Value, ...]]:
    """The operands of every tensor that is optimised: itself, its gradient, its state."""
    if not values or len(values) % kinds:
        cx.bad(f"{len(values)} tensors, not a multiple of {kinds}")
    count = len(values) // kinds
    return [tuple(values[k::count]) for k in range(count)]


def _transposed(rows: Sequence[Sequence[Value]]) -> tuple[Value, ...]:
    return tuple(row[k] for k in range(len(rows[0])) for row in rows)


def _scaled(cx: Cx, x: Value, factor: float) -> Value:
    return cx.b.mul(x, cx.b.scalar(factor, x))


def _regularised(cx: Cx, x: Value, gradient: Value, norm: float) -> Value:
    return gradient if norm == 0 else cx.b.add(_scaled(cx, x, norm), gradient)


def _like(cx: Cx, x: Value, value: Value) -> Value:
    return cx.b.reshape(cx.b.cast(value, to=cx.type(x).dtype.name), dims=())


@onnx_op("Adagrad", domain=TRAINING)
def adagrad(
    cx: Cx,
    rate: Value,
    step: Value,
    *values: Value,
    decay_factor: float = 0.0,
    epsilon: float = EPSILON,
    norm_coefficient: float = 0.0,
) -> tuple[Value, ...]:
    """(tensors, sums of squared gradients) after a step."""
    b, rows = cx.b, []
    for x, gradient, squares in _groups(cx, values, 3):
        decay = _scaled(cx, _like(cx, x, step), decay_factor)
        r = b.div(_like(cx, x, rate), b.add(decay, b.scalar(1, decay)))
        g = _regularised(cx, x, gradient, norm_coefficient)
        total = b.add(squares, b.mul(g, g))
        size = b.add(b.sqrt(total), b.scalar(epsilon, x))
        rows.append((b.sub(x, b.div(b.mul(r, g), size)), total))
    return _transposed(rows)


@onnx_op("Adam", domain=TRAINING)
def adam(
    cx: Cx,
    rate: Value,
    step: Value,
    *values: Value,
    alpha: float = 0.8999999761581421,
    beta: float = 0.9990000128746033,
    epsilon: float = EPSILON,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Value, ...]:
    """(tensors, mean gradients, mean squared gradients) after a step."""
    b, rows = cx.b, []
    for x, gradient, mean, squares in _groups(cx, values, 4):
        g = _regularised(cx, x, gradient, norm_coefficient)
        mean = b.add(_scaled(cx, mean, alpha), _scaled(cx, g, 1 - alpha))
        squares = b.add(_scaled(cx, squares, beta), _scaled(cx, b.mul(g, g), 1 - beta))
        r = _corrected_rate(cx, x, rate, step, alpha, beta)
        after = b.sub(x, b.div(b.mul(r, mean), b.add(b.sqrt(squares), b.scalar(epsilon, x))))
        rows.append((_scaled(cx, after, 1 - norm_coefficient_post), mean, squares))
    return _transposed(rows)


def _corrected_rate(cx: Cx, x: Value, rate: Value, step: Value, alpha: float, beta: float) -> Value:
    """The rate at a step > 0, when means of few gradients are still small."""
    b, r, t = cx.b, _like(cx, x, rate), _like(cx, x, step)
    one = b.scalar(1, r)
    first, second = (b.sub(one, b.pow(b.scalar(v, r), t)) for v in (alpha, beta))
    return b.select(b.gt(t, b.scalar(0, t)), b.div(b.mul(r, b.sqrt(second)), first), r)


@onnx_op("Momentum", domain=TRAINING)
def momentum(
    cx: Cx,
    rate: Value,
    step: Value,
    *values: Value,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> tuple[Value, ...]:
    """(tensors, momenta) after a step; Nesterov's looks one step ahead."""
    if mode not in ("standard", "nesterov"):
        cx.bad(f"mode={mode!r}")
    b, rows = cx.b, []
    for x, gradient, velocity in _groups(cx, values, 3):
        r, t = _like(cx, x, rate), _like(cx, x, step)
        later = b.gt(t, b.scalar(0, t))
        share = b.select(later, b.scalar(beta, x), b.scalar(1, x))
        g = _regularised(cx, x, gradient, norm_coefficient)
        velocity = b.add(_scaled(cx, velocity, alpha), b.mul(share, g))
        move = velocity if mode == "standard" else b.add(g, _scaled(cx, velocity, alpha))
        rows.append((b.sub(x, b.mul(r, move)), velocity))
    return _transposed(rows)
