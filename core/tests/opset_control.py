"""Recurrent layers, subgraphs, sequences and optionals at every version of theirs."""

from __future__ import annotations

import numpy as np
from onnx_models import f32
from opset_example import Examples

RNG = np.random.default_rng(5)
STEPS, BATCH, WIDTH, HIDDEN = 3, 2, 4, 3
X = f32(RNG.standard_normal((STEPS, BATCH, WIDTH)))
LENGTHS = np.array([3, 1], np.int32)
TYPES = (19, 21, 23, 24, 25)  # opsets whose only news are element types

EXAMPLES = Examples()
node = EXAMPLES.node
text = EXAMPLES.text


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _weights(gates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shapes = (1, gates * HIDDEN, WIDTH), (1, gates * HIDDEN, HIDDEN), (1, 2 * gates * HIDDEN)
    w, r, b = (f32(RNG.uniform(-0.5, 0.5, s)) for s in shapes)
    return w, r, b


def _run(step, x, states, lengths=None):
    """(Y [S, 1, B, H], final states): `step(x_t, *states)`; beyond its length an entry rests."""
    outputs = []
    for t, part in enumerate(x):
        after = step(part, *states)
        if lengths is not None:
            live = (t < lengths)[:, None]
            outputs.append(np.where(live, after[0], 0))
            states = [np.where(live, a, s) for a, s in zip(after, states, strict=True)]
        else:
            outputs.append(after[0])
            states = list(after)
    return f32(outputs)[:, None], [f32(s)[None] for s in states]


def _halves(b):
    return b[0, : b.shape[1] // 2], b[0, b.shape[1] // 2 :]


def _rnn(w, r, b):
    wb, rb = _halves(b)
    return lambda x, h: (np.tanh(x @ w[0].T + h @ r[0].T + wb + rb),)


def _gru(w, r, b, linear):
    (wz, wr, wh), (rz, rr, rh) = np.split(w[0], 3), np.split(r[0], 3)
    (wbz, wbr, wbh), (rbz, rbr, rbh) = (np.split(half, 3) for half in _halves(b))

    def step(x, h):
        z = _sigmoid(x @ wz.T + h @ rz.T + wbz + rbz)
        reset = _sigmoid(x @ wr.T + h @ rr.T + wbr + rbr)
        inner = reset * (h @ rh.T + rbh) if linear else (reset * h) @ rh.T + rbh
        return ((1 - z) * np.tanh(x @ wh.T + inner + wbh) + z * h,)

    return step


def _lstm(w, r, b, p):
    (wi, wo, wf, wc), (ri, ro, rf, rc) = np.split(w[0], 4), np.split(r[0], 4)
    bi, bo, bf, bc = np.split(sum(_halves(b)), 4)
    pi, po, pf = np.split(p[0], 3)

    def step(x, h, c):
        i = _sigmoid(x @ wi.T + h @ ri.T + bi + pi * c)
        f = _sigmoid(x @ wf.T + h @ rf.T + bf + pf * c)
        cell = f * c + i * np.tanh(x @ wc.T + h @ rc.T + bc)
        o = _sigmoid(x @ wo.T + h @ ro.T + bo + po * cell)
        return o * np.tanh(cell), cell

    return step


# Recurrent layers: output_sequence says in old opsets whether Y is wanted; linear_before_reset
# comes with 3, layout with 14.
ZERO = np.zeros((BATCH, HIDDEN), np.float32)
START = f32(RNG.standard_normal((1, BATCH, HIDDEN)))
W, R, B = _weights(1)
Y, (H,) = _run(_rnn(W, R, B), X, [START[0]], LENGTHS)
node("RNN", [1], [X, W, R, B, LENGTHS, START], Y, H, hidden_size=HIDDEN, output_sequence=1)
node("RNN", (7, 14, 22), [X, W, R, B, LENGTHS, START], Y, H, hidden_size=HIDDEN)
Y, (H,) = _run(_rnn(W, R, B), X, [ZERO])
FIRST = X.swapaxes(0, 1)
node("RNN", (14, 22), [FIRST, W, R, B], Y.transpose(2, 0, 1, 3), H.swapaxes(0, 1),
     hidden_size=HIDDEN, layout=1)  # fmt: skip
W, R, B = _weights(3)
Y, (H,) = _run(_gru(W, R, B, False), X, [START[0]], LENGTHS)
node("GRU", (1, 3), [X, W, R, B, LENGTHS, START], Y, H, hidden_size=HIDDEN, output_sequence=1)
node("GRU", (7, 14, 22), [X, W, R, B, LENGTHS, START], Y, H, hidden_size=HIDDEN)
Y, (H,) = _run(_gru(W, R, B, True), X, [ZERO])
node("GRU", (3, 7, 14, 22), [X, W, R, B], Y, H, hidden_size=HIDDEN, linear_before_reset=1)
node("GRU", (14, 22), [FIRST, W, R, B], Y.transpose(2, 0, 1, 3), H.swapaxes(0, 1),
     hidden_size=HIDDEN, linear_before_reset=1, layout=1)  # fmt: skip
W, R, B = _weights(4)
P, CELL = f32(RNG.uniform(-1, 1, (1, 3 * HIDDEN))), f32(RNG.standard_normal((1, BATCH, HIDDEN)))
Y, (H, C) = _run(_lstm(W, R, B, P), X, [START[0], CELL[0]], LENGTHS)
INPUTS = [X, W, R, B, LENGTHS, START, CELL, P]
node("LSTM", [1], INPUTS, Y, H, C, hidden_size=HIDDEN, output_sequence=1)
node("LSTM", (7, 14, 22), INPUTS, Y, H, C, hidden_size=HIDDEN)
Y, (H, C) = _run(_lstm(W, R, B, 0 * P), X, [ZERO, ZERO])
node("LSTM", (14, 22), [FIRST, W, R, B], Y.transpose(2, 0, 1, 3), H.swapaxes(0, 1),
     C.swapaxes(0, 1), hidden_size=HIDDEN, layout=1)  # fmt: skip

# Subgraphs: what they mean did not change, but what they may give did.
IF = """m (bool c, float[2] x) => (y) { y = If(c) <
    then_branch = t () => (float[2] a) { a = Add(x, x) },
    else_branch = e () => (float[2] b) { b = Neg(x) }> }"""
for truth, expected in ((True, [2, 4]), (False, [-1, -2])):
    text(f"If {truth}", (7, 11, 13, 16, *TYPES), IF, {"c": np.array(truth), "x": f32([1, 2])},
         f32(expected))  # fmt: skip
text("If-1", [1], IF.replace("Add(x, x)", "Exp(x)"), {"c": np.array(False), "x": f32([1, 2])},
     f32([-1, -2]))  # fmt: skip
LOOP = """m (int64 n, bool go, float[2] x) => (y, s) { y, s = Loop(n, go, x) <
    body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] o) {
      d = Identity(c)  w = Exp(v)  o = Neg(v) }> }"""
FEEDS = {"n": np.array(2), "go": np.array(True), "x": f32([0, -1])}
E1 = np.exp(f32([0, -1]))
text("Loop", (1, 7, 11, 13, 16, *TYPES), LOOP, FEEDS, np.exp(E1), np.stack([-f32([0, -1]), -E1]))
text("Loop of no step", (1, 11, 13, 16, *TYPES), LOOP, {**FEEDS, "go": np.array(False)},
     f32([0, -1]), np.zeros((0, 2), np.float32))  # fmt: skip

# Scan: opset 8 has a batch axis first and scans axis 1; later ones name the axes.
BODY = """<num_scan_inputs = 1{more}, body = b (float s, float v) => (float t, float o) {{
      t = Add(s, v)  o = Identity(t) }}>"""
SUMS = f32([[1, 3, 6], [10, 30, 60]])
ROWS = f32([[1, 2, 3], [10, 20, 30]])
SCAN8 = "m (float[2] s, float[2, 3] x) => (t, y) { t, y = Scan" + BODY + "(, s, x) }"
text("Scan", [8], SCAN8.replace("{more}", "").replace("{{", "{").replace("}}", "}"),
     {"s": f32([0, 0]), "x": ROWS}, f32([6, 60]), SUMS)  # fmt: skip
text("Scan backwards", [8],
     SCAN8.replace("{more}", ", directions = [1]").replace("{{", "{").replace("}}", "}"),
     {"s": f32([0, 0]), "x": ROWS}, f32([6, 60]), f32([[3, 5, 6], [30, 50, 60]]))  # fmt: skip
text("Scan of some", [8], SCAN8.replace("(float[2] s", "(int64[2] n, float[2] s")
     .replace("(, s", "(n, s").replace("{more}", "").replace("{{", "{").replace("}}", "}"),
     {"n": np.array([3, 1]), "s": f32([0, 0]), "x": ROWS},
     f32([6, 10]), f32([[1, 3, 6], [10, 0, 0]]))  # fmt: skip
SCAN9 = "m (float s, float[3] x) => (t, y) { t, y = Scan" + BODY + "(s, x) }"
NEWER = (9, 11, 16, *TYPES)
text("Scan", NEWER, SCAN9.replace("{more}", "").replace("{{", "{").replace("}}", "}"),
     {"s": f32(0), "x": ROWS[0]}, f32(6), SUMS[0])  # fmt: skip
text("Scan both ways", NEWER,
     SCAN9.replace("{more}", ", scan_input_directions = [1], scan_output_directions = [1]")
     .replace("{{", "{").replace("}}", "}"),
     {"s": f32(0), "x": ROWS[0]}, f32(6), f32([6, 5, 3]))  # fmt: skip
AXES = """m (float[2] s, float[2, 3] x) => (t, y) { t, y = Scan <num_scan_inputs = 1,
    scan_input_axes = [AXIS], scan_output_axes = [AXIS],
    body = b (float[2] s, float[2] v) => (float[2] t, float[2] o) {
      t = Add(s, v)  o = Identity(t) }>(s, x) }"""
text("Scan of columns", NEWER, AXES.replace("AXIS", "1"), {"s": f32([0, 0]), "x": ROWS},
     f32([6, 60]), SUMS)  # fmt: skip
text("Scan of the last axis", NEWER[1:], AXES.replace("AXIS", "-1"), {"s": f32([0, 0]), "x": ROWS},
     f32([6, 60]), SUMS)  # fmt: skip

# Sequences and optionals.
text("SplitToSequence", (11, 24), """m (float[5] x) => (y) <int64 n = {2}> {
    s = SplitToSequence<axis=0>(x, n)  p = Constant<value_int=-1>()  y = SequenceAt(s, p) }"""
     .replace("Constant<value_int=-1>", "Constant<value = int64 {-1}>"),
     {"x": f32(range(5))}, f32([4]))  # fmt: skip
OPTIONAL = """m (float[2] x) => (y, has) {
    o = Optional(x)  has = OptionalHasElement(o)  y = OptionalGetElement(o) }"""
text("Optional", (15, 18, 28), OPTIONAL, {"x": f32([1, 2])}, f32([1, 2]), np.array(True))
