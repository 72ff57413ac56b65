"""RNN, GRU and LSTM against loops written from the ONNX text: row B21 of the fault list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.faults.cases import Array, Model, check

S, B, IN, H = 4, 2, 3, 2
LENGTHS = np.array([2, 4], np.int32)
RNG = np.random.default_rng(21)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def clipped(x: Array, clip: float) -> Array:
    return np.clip(x, -clip, clip) if clip else x


def gru(x, h, w, r, b, linear_before_reset, clip):  # type: ignore[no-untyped-def]
    """One step; gates in the order z, r, h."""
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    bz, br, bh, cz, cr, ch = np.split(b, 6)
    z = sigmoid(clipped(x @ wz.T + h @ rz.T + bz + cz, clip))
    reset = sigmoid(clipped(x @ wr.T + h @ rr.T + br + cr, clip))
    inner = reset * (h @ rh.T + ch) if linear_before_reset else (reset * h) @ rh.T + ch
    return (1 - z) * np.tanh(clipped(x @ wh.T + inner + bh, clip)) + z * h


def lstm(x, h, c, w, r, b, p, clip):  # type: ignore[no-untyped-def]
    """One step; gates in the order i, o, f, c; peepholes i, o, f."""
    gates = x @ w.T + h @ r.T + b[: 4 * H] + b[4 * H :]
    i, o, f, g = np.split(gates, 4, axis=-1)
    pi, po, pf = np.split(p, 3)
    i = sigmoid(clipped(i + pi * c, clip))
    f = sigmoid(clipped(f + pf * c, clip))
    after = f * c + i * np.tanh(clipped(g, clip))
    return sigmoid(clipped(o + po * after, clip)) * np.tanh(after), after


def rnn(x, h, w, r, b, clip):  # type: ignore[no-untyped-def]
    return np.tanh(clipped(x @ w.T + h @ r.T + b[:H] + b[H:], clip))


def walk(step: Any, x: Array, start: tuple[Array, ...], backwards: bool) -> tuple[Array, ...]:
    """Y [S, B, H] and the final states; a step beyond an entry's length gives zeros."""
    y, ends = np.zeros((S, B, H), np.float32), [s.copy() for s in start]
    for entry in range(B):
        state = tuple(s[entry : entry + 1] for s in start)
        order = range(LENGTHS[entry])
        for t in reversed(order) if backwards else order:
            state = step(x[t, entry : entry + 1], *state)
            y[t, entry] = state[0][0]
        for end, value in zip(ends, state, strict=True):
            end[entry] = value[0]
    return (y, *ends)


CASES = [
    (kind, direction, layout, extra)
    for kind, options in (
        ("GRU", ({}, {"linear_before_reset": 1}, {"clip": 0.3})),
        ("LSTM", ({}, {"clip": 0.3})),
        ("RNN", ({},)),
    )
    for direction in ("forward", "reverse", "bidirectional")
    for layout in (0, 1)
    for extra in options
    if not (extra and layout)
]
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def stepper(kind: str, v: dict[str, Array], d: int, extra: Any) -> Any:
    """One step of direction d: (x, states...) to the next states."""
    w, r, b = (v[k][d] for k in "WRB")
    clip, reset = extra.get("clip", 0), extra.get("linear_before_reset", 0)
    if kind == "GRU":
        return lambda x, h: (gru(x, h, w, r, b, reset, clip),)
    if kind == "LSTM":
        return lambda x, h, c: lstm(x, h, c, w, r, b, v["P"][d], clip)
    return lambda x, h: (rnn(x, h, w, r, b, clip),)


def expected(kind: str, direction: str, v: dict[str, Array], extra: Any) -> list[Array]:
    """Y [S, D, B, H] and the final states [D, B, H]."""
    parts = []
    turned = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    for d, backwards in enumerate(turned):
        start = (v["h"][d], v["c"][d]) if kind == "LSTM" else (v["h"][d],)
        parts.append(walk(stepper(kind, v, d, extra), v["X"], start, backwards))
    y, *ends = zip(*parts, strict=True)
    return [np.stack(y, 1), *(np.stack(e) for e in ends)]


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_b21_every_direction_layout_and_option(kind: str) -> None:
    m, wants = Model(), []
    for name, direction, layout, extra in CASES:
        if name != kind:
            continue
        d, g = 2 if direction == "bidirectional" else 1, GATES[kind] * H
        v = {"X": normal(S, B, IN), "W": normal(d, g, IN), "R": normal(d, g, H),
             "c": normal(d, B, H), "B": normal(d, 2 * g), "h": normal(d, B, H),
             "P": normal(d, 3 * H)}  # fmt: skip

        def batch_first(a: Array, layout: int = layout) -> Array:
            return a.swapaxes(0, 1).copy() if layout else a

        inputs = [m.feed(batch_first(v["X"])), *(m.const(v[k]) for k in "WRB"), m.feed(LENGTHS),
                  m.feed(batch_first(v["h"]))]  # fmt: skip
        if kind == "LSTM":
            inputs += [m.feed(batch_first(v["c"])), m.const(v["P"])]
        count = 3 if kind == "LSTM" else 2
        how = {"hidden_size": H, "direction": direction, "layout": layout, **extra}
        m.keep(*m.op(kind, *inputs, outputs=count, **how))
        y, *ends = expected(kind, direction, v, extra)
        wants += [y.transpose(2, 0, 1, 3) if layout else y]
        wants += [e.swapaxes(0, 1) if layout else e for e in ends]
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want, 1e-4, 1e-5)


def test_b21_single_outputs() -> None:
    m = Model()
    x, w, r = m.feed(normal(S, B, IN)), m.const(normal(1, 3 * H, IN)), m.const(normal(1, 3 * H, H))
    y, last = m.op("GRU", x, w, r, outputs=2, hidden_size=H)
    only_y = m.op("GRU", x, w, r, hidden_size=H)
    m.node("GRU", [x, w, r], ["", "only_last"], hidden_size=H)
    m.keep(y, last, only_y, "only_last")
    whole, end, first, second = m.run()
    check(first, whole)
    check(second, end)
    check(end[0], whole[-1, 0])
