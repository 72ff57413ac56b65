"""Element-wise operators at every version of theirs."""

from __future__ import annotations

import math

import numpy as np
from onnx_models import f32
from opset_example import Examples

NAN, INF = float("nan"), float("inf")
X = f32([[-2.5, -1.0, -0.25], [0.5, 1.0, 3.0]])
POSITIVE = np.abs(X) + f32(0.125)
INSIDE = X / 4
LARGE = np.abs(X) + 1

EXAMPLES = Examples()
node = EXAMPLES.node


def _consuming(op: str, opsets: tuple[int, ...], x: np.ndarray, y: np.ndarray) -> None:
    """Opset 1 says which buffers an operator may overwrite; that changes nothing."""
    node(op, opsets, [x], y)
    node(op, [1], [x], y, consumed_inputs=[0])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_consuming("Abs", (1, 6, 13), X, np.abs(X))
_consuming("Ceil", (1, 6, 13), X, np.ceil(X))
_consuming("Exp", (1, 6, 13), X, np.exp(X))
_consuming("Floor", (1, 6, 13), X, np.floor(X))
_consuming("Log", (1, 6, 13), POSITIVE, np.log(POSITIVE))
_consuming("Neg", (1, 6, 13), X, -X)
_consuming("Reciprocal", (1, 6, 13), X, 1 / X)
_consuming("Relu", (1, 6, 13, 14), X, np.maximum(X, 0))
_consuming("Sigmoid", (1, 6, 13), X, _sigmoid(X))
_consuming("Sqrt", (1, 6, 13), POSITIVE, np.sqrt(POSITIVE))
_consuming("Tanh", (1, 6, 13), X, np.tanh(X))
_consuming("Elu", (1, 6, 22), X, np.where(X < 0, np.exp(X) - 1, X))
_consuming("LeakyRelu", (1, 6, 16), X, np.where(X < 0, X * f32(0.01), X))
_consuming("HardSigmoid", (1, 6, 22), X, np.clip(X * 0.2 + f32(0.5), 0, 1))
for name, opsets, x, y in (
    ("Acos", (7, 22), INSIDE, np.arccos(INSIDE)),
    ("Acosh", (9, 22), LARGE, np.arccosh(LARGE)),
    ("Asin", (7, 22), INSIDE, np.arcsin(INSIDE)),
    ("Asinh", (9, 22), X, np.arcsinh(X)),
    ("Atan", (7, 22), X, np.arctan(X)),
    ("Atanh", (9, 22), INSIDE, np.arctanh(INSIDE)),
    ("Cos", (7, 22), X, np.cos(X)),
    ("Cosh", (9, 22), X, np.cosh(X)),
    ("Erf", (9, 13), X, f32([math.erf(v) for v in X.ravel()]).reshape(X.shape)),
    ("Sin", (7, 22), X, np.sin(X)),
    ("Sinh", (9, 22), X, np.sinh(X)),
    ("Tan", (7, 22), X, np.tan(X)),
    ("Softsign", (1, 22), X, X / (1 + np.abs(X))),
    ("Softplus", (1, 22), X, np.log1p(np.exp(X))),
    ("Mish", (18, 22), X, X * np.tanh(np.log1p(np.exp(X)))),
    ("HardSwish", (14, 22), X, X * np.clip(X / 6 + f32(0.5), 0, 1)),
    ("Round", (11, 22), f32([-1.5, -0.5, 0.5, 1.5, 2.4]), f32([-2, -0.0, 0, 2, 2])),
    ("Sign", (9, 13), X, np.sign(X)),
    ("ThresholdedRelu", (10, 22), X, np.where(X > 1, X, 0).astype(np.float32)),
    ("Celu", (12, 28), X, np.maximum(X, 0) + np.minimum(0, np.exp(X) - 1)),
    ("IsNaN", (9, 13, 20), f32([1, NAN, INF]), np.array([False, True, False])),
    ("IsInf", (10, 20), f32([1, NAN, INF, -INF]), np.array([False, False, True, True])),
    ("Not", (1,), np.array([True, False]), np.array([False, True])),
):
    node(name, opsets, [x], y, rtol=2e-5)

# Selu: opset 1 has shorter constants.
for opsets, alpha, gamma in (([1], 1.6732, 1.0507), ([6, 22], 1.67326319217681, 1.05070102214813)):
    y = f32(gamma * np.where(X > 0, X, alpha * (np.exp(X.astype(float)) - 1)))
    node("Selu", opsets, [X], y, rtol=1e-6)

# Arithmetic and logic: until opset 6 operands broadcast only if asked, from `axis` on.
A = f32(range(1, 25)).reshape(2, 3, 4)
LAST, MIDDLE, ONE = f32([1, 2, 3, 4]), f32([10, 20, 30]), f32(2)
for name, function in (
    ("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide),
):  # fmt: skip
    node(name, (1, 6, 7, 13, 14), [A, A + 1], function(A, A + 1))
    node(name, (1, 6), [A, LAST], function(A, LAST), broadcast=1)
    node(name, (1, 6), [A, ONE], function(A, ONE), broadcast=1)
    node(name, (1, 6), [A, MIDDLE], function(A, MIDDLE[:, None]), broadcast=1, axis=1)
    node(name, (1, 6), [A, A[0, :, 0]], function(A, A[0, :, :1]), broadcast=1, axis=-2)
    node(name, (1, 6), [A, A[0, :, :] + 1], function(A, A[0] + 1), broadcast=1, axis=1)
    node(name, (7, 13, 14), [LAST, A], function(LAST, A))
    integers = np.array([7, -9, 100], np.int32), np.array([2, 4, -7], np.int32)
    quotient = np.array([3, -2, -14], np.int32)
    whole = quotient if name == "Div" else function(*integers)
    node(name, (6, 7, 13, 14), integers, whole)
    small = np.array([200, 7], np.uint8), np.array([3, 2], np.uint8)
    node(name, (14,), small, np.array([66, 3], np.uint8) if name == "Div" else function(*small))
node("Add", (1,), [A, LAST], A + LAST, broadcast=1, consumed_inputs=[0, 0])

T, F = True, False
BITS = np.array([[T, F], [T, F]]), np.array([[T, T], [F, F]])
for name, function in (
    ("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor),
):  # fmt: skip
    node(name, (1, 7), BITS, function(*BITS))
    node(name, (1,), [BITS[0], BITS[1][:, 0]], function(BITS[0], BITS[1][:, :1]),
         broadcast=1, axis=0)  # fmt: skip
    node(name, (7,), [BITS[0], BITS[1][0]], function(BITS[0], BITS[1][0]))

COUNTS = np.array([[1, 2, 3], [3, 2, 1]], np.int32)
node("Equal", (1, 7, 11, 13, 19), [COUNTS, COUNTS[::-1]], COUNTS[::-1] == COUNTS)
node("Equal", (1,), [COUNTS, COUNTS[:, 0]], COUNTS[:, :1] == COUNTS, broadcast=1, axis=0)
node("Equal", (11, 13, 19), [X, X[0]], X[0] == X)
for name, function in (("Less", np.less), ("Greater", np.greater)):
    node(name, (1, 7, 9, 13), [A, A[::-1]], function(A, A[::-1]))
    node(name, (1,), [A, MIDDLE], function(A, MIDDLE[:, None]), broadcast=1, axis=1)
    node(name, (7, 9, 13), [A, LAST], function(A, LAST))
    node(name, (9, 13), [COUNTS, COUNTS[0]], function(COUNTS, COUNTS[0]))
for name, function in (("LessOrEqual", np.less_equal), ("GreaterOrEqual", np.greater_equal)):
    node(name, (12, 16), [COUNTS, COUNTS[0]], function(COUNTS, COUNTS[0]))

node("Pow", (1, 7, 12, 13, 15), [POSITIVE, X], POSITIVE**X)
node("Pow", (1,), [A, f32([1, 2, 0.5])], A ** f32([[1], [2], [0.5]]), broadcast=1, axis=1)
node("Pow", (12, 13, 15), [np.array([2, 3], np.int64), f32([3, 2])], np.array([8, 9]))
node("Pow", (12, 13, 15), [f32([2, 3]), np.array([3, -2])], f32([8, 1 / 9]))

# Sum, Mean, Max and Min: operands broadcast from opset 8 on.
for name, opsets, function in (
    ("Sum", (1, 6, 8, 13), lambda *v: sum(v)),
    ("Mean", (1, 6, 8, 13), lambda *v: sum(v) / np.float32(len(v))),
    ("Max", (1, 6, 8, 12, 13), lambda *v: np.maximum.reduce(np.broadcast_arrays(*v))),
    ("Min", (1, 6, 8, 12, 13), lambda *v: np.minimum.reduce(np.broadcast_arrays(*v))),
):
    node(name, opsets, [A, A[::-1], A * A], function(A, A[::-1], A * A))
    node(name, opsets, [A], A)
    node(name, [1], [A, A + 1], function(A, A + 1), consumed_inputs=[0, 0])
    node(name, opsets[2:], [A, LAST, ONE], function(A, LAST, ONE))
    if name in ("Max", "Min"):
        node(name, opsets[3:], [COUNTS, COUNTS[0]], function(COUNTS, COUNTS[0]))

# Clip: bounds are attributes before opset 11. From 6 on they default to the largest finite numbers.
WIDE = f32([-INF, -3, 0.5, 3, INF, NAN])
MOST = np.finfo(np.float32).max
node("Clip", (1, 6), [WIDE], np.clip(WIDE, -1, 1), min=-1.0, max=1.0)
node("Clip", (1,), [WIDE], np.minimum(WIDE, 1), max=1.0)
node("Clip", (1,), [WIDE], WIDE, consumed_inputs=[0])
node("Clip", (6,), [WIDE], np.clip(WIDE, -1, MOST), min=-1.0)
node("Clip", (6,), [WIDE], np.clip(WIDE, -MOST, MOST))
HALVES = np.array([-INF, -1, 65504, INF], np.float16)
node("Clip", (6,), [HALVES], np.maximum(HALVES, 0), min=0.0)
node("Clip", (11, 12, 13), [WIDE, f32(-1), f32(1)], np.clip(WIDE, -1, 1))
node("Clip", (11, 12, 13), [WIDE, None, f32(1)], np.minimum(WIDE, 1))
node("Clip", (11, 12, 13), [WIDE], WIDE)
node("Clip", (12, 13), [COUNTS, np.int32(2)], np.maximum(COUNTS, 2))

# PRelu: one slope for a channel before opset 7, then numpy's broadcast.
SLOPES = f32([0.5, 0.25, 2])
IMAGE = f32(range(-12, 12)).reshape(2, 3, 2, 2)
node("PRelu", (1, 6), [IMAGE, SLOPES], np.where(IMAGE < 0, IMAGE * SLOPES[:, None, None], IMAGE))
node("PRelu", (1,), [IMAGE, f32([3])], np.where(IMAGE < 0, IMAGE * 3, IMAGE), consumed_inputs=[0])
node("PRelu", (1, 6), [X, SLOPES], np.where(X < 0, X * SLOPES, X))
node("PRelu", (7, 9, 16), [IMAGE, SLOPES[:, None, None]],
     np.where(IMAGE < 0, IMAGE * SLOPES[:, None, None], IMAGE))  # fmt: skip
node(
    "PRelu", (9, 16), [COUNTS - 2, np.int32(5)], np.where(COUNTS < 2, (COUNTS - 2) * 5, COUNTS - 2)
)

SIGNED = np.array([-7, 7, -7, 7], np.int32), np.array([3, -3, -3, 3], np.int32)
node("Mod", (10, 13, 28), SIGNED, np.mod(*SIGNED))
node("Mod", (10, 13, 28), SIGNED, np.fmod(*SIGNED), fmod=1)
node("Mod", (10, 13, 28), [X, f32(0.75)], np.fmod(X, f32(0.75)), fmod=1)
BYTES = np.array([1, 6, 129], np.uint8)
node("BitShift", (11, 28), [BYTES, np.array([1, 2, 1], np.uint8)], np.array([2, 24, 2], np.uint8),
     direction="LEFT")  # fmt: skip
node("BitShift", (11, 28), [BYTES, np.array([0, 1, 7], np.uint8)], np.array([1, 3, 1], np.uint8),
     direction="RIGHT")  # fmt: skip
node("Where", (9, 16), [X > 0, X, f32(7)], np.where(X > 0, X, f32(7)))

# Cast: the type is a name in opset 1.
for to, code, kind in (("INT32", 6, np.int32), ("BOOL", 9, np.bool_), ("DOUBLE", 11, np.float64)):
    node("Cast", [1], [X], X.astype(kind), to=to)
    node("Cast", (6, 9, 13, 19, 21, 23, 24, 25, 28), [X], X.astype(kind), to=code)
node("CastLike", (15, 19, 21, 23, 24, 25), [X, np.int8(0)], X.astype(np.int8))
