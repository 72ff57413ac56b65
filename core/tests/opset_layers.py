"""Normalisations, dropout, losses and quantisation at every version of theirs."""

from __future__ import annotations

import numpy as np
from onnx_models import f32, i64
from opset_example import Examples

RNG = np.random.default_rng(3)
X = f32(RNG.standard_normal((2, 4, 3, 2)))
SCALE, BIAS, MEAN, VAR = (
    f32([1, 2, -1, 0.5]),
    f32([0, 1, 2, 3]),
    f32([0.5, 0, -1, 2]),
    f32([1, 4, 2, 3]),
)

EXAMPLES = Examples()
node = EXAMPLES.node


def _channel(vector: np.ndarray) -> np.ndarray:
    return vector.reshape(-1, 1, 1)


def _normal(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    """Mean 0 and variance 1 over these axes."""
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + f32(epsilon))


# BatchNormalization: is_test and consumed_inputs at first, single activations until 9, training
# with other outputs since 14.
PARTS = [SCALE, BIAS, MEAN, VAR]
STEADY = (X - _channel(MEAN)) / np.sqrt(_channel(VAR) + f32(1e-5)) * _channel(SCALE) + _channel(
    BIAS
)
SPREAD = f32(RNG.uniform(0.5, 2, (4, 4, 3, 2)))
SINGLE = (X - SPREAD[2]) / np.sqrt(SPREAD[3] + f32(1e-5)) * SPREAD[0] + SPREAD[1]
OLD = {"is_test": 1, "momentum": 0.8}
node("BatchNormalization", [1], [X, *PARTS], STEADY, consumed_inputs=[0, 0, 0, 1, 1], **OLD)
node("BatchNormalization", [1], [X, *SPREAD], SINGLE, consumed_inputs=[0] * 5, spatial=0, is_test=1)
node("BatchNormalization", [6], [X, *PARTS], STEADY, spatial=1, **OLD)
node("BatchNormalization", [6], [X, *SPREAD], SINGLE, spatial=0, is_test=1)
node("BatchNormalization", (6, 7, 9, 14, 15), [X, *PARTS], STEADY)
node("BatchNormalization", [7], [X, *SPREAD], SINGLE, spatial=0)
node("BatchNormalization", (7, 9, 14, 15), [X[:, :, 0, 0], *PARTS], STEADY[:, :, 0, 0])
ROWS = (0, 2, 3)
TRAINED = _normal(X, ROWS) * _channel(SCALE) + _channel(BIAS)
node("BatchNormalization", (14, 15), [X, *PARTS], TRAINED, f32(0.75) * MEAN + X.mean(ROWS) / 4,
     f32(0.75) * VAR + X.var(ROWS) / 4, training_mode=1, momentum=0.75, rtol=1e-4)  # fmt: skip

SPACE = (2, 3)
INSTANCES = _normal(X, SPACE) * _channel(SCALE) + _channel(BIAS)
node("InstanceNormalization", (1, 6, 22), [X, SCALE, BIAS], INSTANCES, rtol=1e-4)
node(
    "InstanceNormalization", [1], [X, SCALE, BIAS], INSTANCES, consumed_inputs=[0, 0, 0], rtol=1e-4
)
node("MeanVarianceNormalization", (9, 13), [X], _normal(X, ROWS, 1e-9), rtol=1e-4)
node("MeanVarianceNormalization", (9, 13), [X], _normal(X, (1, 2), 1e-9), axes=[1, 2], rtol=1e-4)

# GroupNormalization: scale and bias belong to groups in opset 18, to channels since 21.
GROUPS = _normal(X.reshape(2, 2, 12), (2,)).reshape(X.shape)
PAIR = f32([2, -1]), f32([1, 5])
BY_GROUP = GROUPS * _channel(PAIR[0].repeat(2)) + _channel(PAIR[1].repeat(2))
node("GroupNormalization", [18], [X, *PAIR], BY_GROUP, num_groups=2, rtol=1e-4)
node("GroupNormalization", [21], [X, SCALE, BIAS], GROUPS * _channel(SCALE) + _channel(BIAS),
     num_groups=2, rtol=1e-4)  # fmt: skip

SQUARES = np.pad(X**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
NEAR = sum(SQUARES[:, k : k + 4] for k in range(3))
node("LRN", (1, 13), [X], X / (2 + f32(0.3) / 3 * NEAR) ** f32(0.75), size=3, alpha=0.3, bias=2.0)
node("LpNormalization", (1, 22), [X], X / np.sqrt((X**2).sum(-1, keepdims=True)))
node("LpNormalization", (1, 22), [X], X / np.abs(X).sum(1, keepdims=True), axis=1, p=1)

# Dropout: is_test until 7, a mask of floats until 10, inputs since 12; in inference the identity.
node("Dropout", [1], [X], X, is_test=1, ratio=0.9, consumed_inputs=[0])
node("Dropout", (1, 6), [X], X, is_test=1)
node("Dropout", (7, 10), [X], X, ratio=0.9)
node("Dropout", [7], [X], X, np.ones_like(X))
node("Dropout", (10, 12, 13, 22), [X], X, np.ones(X.shape, bool))
node("Dropout", (12, 13, 22), [X, f32(0.9), np.array(False)], X, fix=[1, 2], seed=3)

# Losses: their bodies are the standard's own.
LOGITS, LABELS, WEIGHTS = f32(RNG.standard_normal((3, 5))), i64([1, 0, 4]), f32([1, 2, 3, 4, 5])
LOG = LOGITS - np.log(np.exp(LOGITS).sum(1, keepdims=True))
PICKED = -LOG[range(3), LABELS]
SHARES = WEIGHTS[LABELS]
node("NegativeLogLikelihoodLoss", (12, 13, 22), [LOG, LABELS], PICKED.mean())
node("NegativeLogLikelihoodLoss", (12, 13, 22), [LOG, LABELS, WEIGHTS],
     (PICKED * SHARES).sum() / SHARES.sum())  # fmt: skip
node("NegativeLogLikelihoodLoss", (12, 13, 22), [LOG, LABELS], PICKED * f32([1, 0, 1]),
     reduction="none", ignore_index=0)  # fmt: skip
node("SoftmaxCrossEntropyLoss", (12, 13), [LOGITS, LABELS], PICKED.mean(), LOG)
node("SoftmaxCrossEntropyLoss", (12, 13), [LOGITS, LABELS, WEIGHTS], (PICKED * SHARES).sum(),
     reduction="sum")  # fmt: skip

# Quantisation: one scale in opset 10, one for each slice of an axis since 13, for blocks since 21.
BYTES = np.array([[0, 10, 255], [128, 3, 7]], np.uint8)
NEWER = (13, 19, 21, 23, 24, 25, 28)
WIDE = np.array([[3, -7, 0], [100, 40, -2]], np.int32)
UNITS, ZEROS = f32([0.5, 2, 4]), np.array([0, 10, 128], np.uint8)
node("DequantizeLinear", (10, *NEWER), [BYTES, f32(0.5), np.uint8(128)],
     (BYTES.astype(np.float32) - 128) / 2)  # fmt: skip
node("DequantizeLinear", (10, *NEWER), [WIDE, f32(0.25)], WIDE.astype(np.float32) / 4)
node("DequantizeLinear", NEWER, [BYTES, UNITS, ZEROS],
     (BYTES.astype(np.float32) - ZEROS) * UNITS)  # fmt: skip
node("DequantizeLinear", NEWER, [BYTES, UNITS[:2], ZEROS[:2]],
     (BYTES.astype(np.float32) - ZEROS[:2, None]) * UNITS[:2, None], axis=0)  # fmt: skip
node("DequantizeLinear", NEWER[1:], [BYTES.astype(np.int8), f32(2).astype(np.float16)],
     (BYTES.astype(np.int8) * np.float16(2)))  # fmt: skip
BLOCKS = f32([[1, 2], [3, 4]])
node("DequantizeLinear", NEWER[2:], [BYTES, BLOCKS], BYTES * BLOCKS[:, [0, 0, 1]], axis=1,
     block_size=2)  # fmt: skip
HALVES = f32([[-3, -0.5, 0.5], [1.5, 2.5, 400]])
node("QuantizeLinear", (10, *NEWER), [HALVES, f32(1), np.uint8(1)],
     np.array([[0, 1, 1], [3, 3, 255]], np.uint8))  # fmt: skip
node("QuantizeLinear", (10, *NEWER), [HALVES, f32(2)], np.array([[0, 0, 0], [1, 1, 200]], np.uint8))
node("QuantizeLinear", NEWER, [HALVES, UNITS, ZEROS.astype(np.int8)],
     np.array([[-6, 10, -128], [3, 11, -28]], np.int8))  # fmt: skip
node("QuantizeLinear", NEWER[2:], [HALVES, BLOCKS, np.zeros((2, 2), np.int8)],
     np.array([[-3, 0, 0], [0, 1, 100]], np.int8), axis=1, block_size=2)  # fmt: skip
LEFT, RIGHT = np.array([[1, 2], [3, 4]], np.uint8), np.array([[5, 6], [7, 8]], np.uint8)
node("QLinearMatMul", (10, 21),
     [LEFT, f32(0.5), np.uint8(1), RIGHT, f32(2), np.uint8(5), f32(4), np.uint8(10)],
     np.array([[10, 11], [12, 13]], np.uint8))  # fmt: skip

# NonMaxSuppression: without a limit nothing is selected.
BOXES = f32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]])
SCORES = f32([[[0.9, 0.95, 0.3]]])
LIMITS = [i64([10]), f32([0.5]), f32([0.2])]
node("NonMaxSuppression", (10, 11), [BOXES, SCORES, *LIMITS], i64([[0, 0, 1], [0, 0, 2]]))
node("NonMaxSuppression", (10, 11), [BOXES, SCORES], np.zeros((0, 3), np.int64))
