"""RNN, GRU and LSTM against loops written from the specification."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import run_node

S, B, N, H = 4, 2, 3, 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru_step(x, h, w, r, wb, rb, before_reset):
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    (bz, br, bh), (cz, cr, ch) = np.split(wb, 3), np.split(rb, 3)
    z = sigmoid(x @ wz.T + h @ rz.T + bz + cz)
    reset = sigmoid(x @ wr.T + h @ rr.T + br + cr)
    mixed = reset * (h @ rh.T + ch) if before_reset else (reset * h) @ rh.T + ch
    return (1 - z) * np.tanh(x @ wh.T + bh + mixed) + z * h


def lstm_step(x, h, c, w, r, b, p, clip):
    gates = np.split(x @ w.T + h @ r.T + b[: 4 * H] + b[4 * H :], 4, axis=1)
    i, o, f, g = gates
    pi, po, pf = np.split(p, 3)

    def held(v):
        return np.clip(v, -clip, clip)

    i, f = sigmoid(held(i + pi * c)), sigmoid(held(f + pf * c))
    c = f * c + i * np.tanh(held(g))
    o = sigmoid(held(o + po * c))
    return o * np.tanh(c), c


def over_time(step, lengths, backwards, state):
    """Y [S, B, H] and the final state: beyond its length an entry keeps state and puts out 0."""
    y = np.zeros((S, B, H), np.float32)
    for t in reversed(range(S)) if backwards else range(S):
        after = step(t, *state)
        alive = (t < lengths)[:, None]
        state = [np.where(alive, a, v) for a, v in zip(after, state, strict=True)]
        y[t] = np.where(alive, state[0], 0)
    return y, state


def parameters(gates, directions, rng):
    shapes = [(directions, gates * H, N), (directions, gates * H, H), (directions, 2 * gates * H)]
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("before_reset", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_gru(direction, before_reset, layout):
    rng = np.random.default_rng(0)
    ways = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[direction]
    x, lengths = rng.standard_normal((S, B, N)).astype(np.float32), np.array([2, 4], np.int32)
    w, r, b = parameters(3, len(ways), rng)
    h0 = rng.standard_normal((len(ways), B, H)).astype(np.float32)
    expected = [
        over_time(
            lambda t, h, d=d: [
                gru_step(x[t], h, w[d], r[d], *np.split(b[d], 2), before_reset)
            ],
            lengths, back, [h0[d]],
        )
        for d, back in enumerate(ways)
    ]  # fmt: skip
    given = [v.swapaxes(0, 1) if layout else v for v in (x, h0)]
    y, y_h = run_node(
        "GRU", [given[0], w, r, b, lengths, given[1]], 2, hidden_size=H, direction=direction,
        linear_before_reset=before_reset, layout=layout,
    )  # fmt: skip
    steps = np.stack([e[0] for e in expected], 1)
    final = np.stack([e[1][0] for e in expected])
    np.testing.assert_allclose(y, steps.transpose(2, 0, 1, 3) if layout else steps, atol=1e-6)
    np.testing.assert_allclose(y_h, final.swapaxes(0, 1) if layout else final, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_lstm_with_peepholes_and_clip(direction):
    rng = np.random.default_rng(1)
    x, lengths = rng.standard_normal((S, B, N)).astype(np.float32), np.array([4, 3], np.int32)
    w, r, b = parameters(4, 1, rng)
    p = rng.standard_normal((1, 3 * H)).astype(np.float32)
    h0, c0 = rng.standard_normal((2, 1, B, H)).astype(np.float32)
    y, (h, c) = over_time(
        lambda t, h, c: lstm_step(x[t], h, c, w[0], r[0], b[0], p[0], 0.8),
        lengths, direction == "reverse", [h0[0], c0[0]],
    )  # fmt: skip
    got = run_node(
        "LSTM", [x, w, r, b, lengths, h0, c0, p], 3, hidden_size=H, direction=direction,
        clip=0.8,
    )  # fmt: skip
    for value, expected in zip(got, (y[:, None], h[None], c[None]), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-6)


def test_one_step_has_no_loop_and_outputs_may_be_left_out():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, B, N)).astype(np.float32)
    w, r, b = parameters(1, 1, rng)
    y = run_node("RNN", [x, w, r, b], hidden_size=H)
    expected = np.tanh(x[0] @ w[0].T + b[0].reshape(2, H).sum(0))
    np.testing.assert_allclose(y[0, 0], expected, atol=1e-6)
