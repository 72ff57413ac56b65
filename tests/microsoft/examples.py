"""Uses of com.microsoft operators that exporters and quantizers emit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["EXAMPLES", "Example"]


@dataclass(frozen=True)
class Example:
    """One node. inputs: arrays, None for an absent one. outputs: which the node names.

    constants: inputs that are initializers, since an operator needs to know them. domain: ONNX
    Runtime has some of its own operators in ONNX's domain. slack: by how many steps an integer may
    differ, where a sum in another order decides a rounding.
    """

    op: str
    inputs: Sequence[Any]
    outputs: Sequence[bool] = (True,)
    constants: Sequence[int] = ()
    domain: str = "com.microsoft"
    attrs: Mapping[str, Any] = field(default_factory=dict)
    rtol: float = 1e-4
    slack: int = 0


RNG = np.random.default_rng(11)


def f(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def i8(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape, dtype=np.int8)


def i32(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def s(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def z(value: int, kind: type = np.uint8) -> np.ndarray:
    return np.array(value, kind)


EXAMPLES: list[Example] = []


def add(
    op: str,
    *inputs: Any,
    out: Sequence[bool] = (True,),
    const: Sequence[int] = (),
    domain: str = "com.microsoft",
    rtol: float = 1e-4,
    slack: int = 0,
    **attrs: Any,
) -> None:
    """One more example; `out` and `const` are its outputs and constants."""
    EXAMPLES.append(Example(op, inputs, out, const, domain, attrs, rtol, slack))


X = f(2, 3, 8)
WIDE, DEEP = f(8), f(8)

# Activations.
add("Gelu", X)
add("FastGelu", X)
add("FastGelu", X, WIDE)
add("BiasGelu", X, WIDE)
add("QuickGelu", X)
add("QuickGelu", X, alpha=1.2)

# Normalisations; some are in ONNX's domain, of old opsets too.
add("LayerNormalization", X, WIDE, DEEP, domain="")
add("LayerNormalization", X, WIDE, DEEP, domain="", axis=1 - 2, epsilon=1e-3)
add("SimplifiedLayerNormalization", X, WIDE, domain="")
add("SimplifiedLayerNormalization", X, WIDE, domain="", out=(True, True))
add("SkipLayerNormalization", X, f(2, 3, 8), WIDE, DEEP)
add("SkipLayerNormalization", X, f(2, 3, 8), WIDE, DEEP, f(8), out=(True, False, False, True))
add("SkipLayerNormalization", X, f(2, 3, 8), WIDE, epsilon=1e-5)
add("SkipLayerNormalization", X, f(3, 8), WIDE, DEEP)
add("SkipSimplifiedLayerNormalization", X, f(2, 3, 8), WIDE)
add("SkipSimplifiedLayerNormalization", X, f(2, 3, 8), WIDE, f(8), out=(True, False, False, True))
IDS, SEGMENTS = i32([[1, 4, 0], [3, 2, 1]]), i32([[0, 0, 1], [0, 1, 1]])
MASK = i32([[1, 1, 1], [1, 1, 0]])
TABLES = (f(5, 8), f(6, 8), f(2, 8), WIDE, DEEP)
add("EmbedLayerNormalization", IDS, SEGMENTS, *TABLES, MASK, out=(True, True))
add("EmbedLayerNormalization", IDS, SEGMENTS, *TABLES, out=(True, True))
add("EmbedLayerNormalization", IDS, None, TABLES[0], TABLES[1], None, WIDE, DEEP, MASK,
    i32([[2, 0, 1], [5, 4, 3]]), out=(True, True, True))  # fmt: skip

# Products.
A, B = f(2, 4, 3), f(2, 3, 5)
add("FusedMatMul", A, B)
add("FusedMatMul", A.swapaxes(1, 2).copy(), B.swapaxes(1, 2).copy(), alpha=0.5, transA=1, transB=1)
add("FusedMatMul", f(4, 2, 3), B, transBatchA=1)
add("TransposeMatMul", A.swapaxes(1, 2).copy(), B, alpha=2.0, transA=1)
add("FusedGemm", f(4, 3), f(3, 5), f(5), activation="Relu", alpha=0.5, beta=2.0)
add("FusedGemm", f(3, 4), f(5, 3), f(5), activation="LeakyRelu", activation_alpha=0.2, transA=1,
    transB=1)  # fmt: skip
IMAGE, FILTERS = f(1, 3, 6, 6), f(4, 3, 3, 3)
add("FusedConv", IMAGE, FILTERS, f(4), activation="Relu", pads=[1] * 4)
add("FusedConv", IMAGE, FILTERS, f(4), f(1, 4, 4, 4), activation="Relu")
add("FusedConv", IMAGE, FILTERS, activation="Clip", activation_params=[-0.5, 0.5], strides=[2, 2])
add("FusedConv", IMAGE, FILTERS, activation="HardSigmoid", activation_params=[0.3, 0.4])

# Attention.
QKV, QKV_BIAS = f(8, 24, scale=0.5), f(24)
add("Attention", X, QKV, QKV_BIAS, num_heads=2)
add("Attention", X, QKV, QKV_BIAS, i32([3, 2]), num_heads=2)
add("Attention", X, QKV, QKV_BIAS, MASK, num_heads=2)
add("Attention", X, QKV, QKV_BIAS, MASK, num_heads=2, unidirectional=1)
add("Attention", X, QKV, QKV_BIAS, i32(RNG.integers(0, 2, (2, 3, 3)) | np.eye(3, dtype=int)),
    num_heads=2)  # fmt: skip
add("Attention", X, QKV, QKV_BIAS, None, f(2, 2, 2, 4, 4), num_heads=2, unidirectional=1,
    out=(True, True))  # fmt: skip
add("Attention", X, QKV, QKV_BIAS, None, None, f(2, 2, 3, 3), num_heads=2, scale=0.3)
add("Attention", X, f(8, 20, scale=0.5), f(20), num_heads=2, qkv_hidden_sizes=[8, 8, 4])
Q, K, V = f(2, 3, 8), f(2, 5, 8), f(2, 5, 8)
KEYS = i32([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
add("MultiHeadAttention", Q, K, V, num_heads=2)
add("MultiHeadAttention", Q, K, V, f(24), KEYS, num_heads=2)
add("MultiHeadAttention", Q, K, V, None, None, f(2, 2, 3, 5), num_heads=2, scale=0.4)
add("MultiHeadAttention", Q, Q * 2, Q + 1, None, None, None, f(2, 2, 4, 4), f(2, 2, 4, 4),
    num_heads=2, out=(True, True, True))  # fmt: skip
add("MultiHeadAttention", Q, f(2, 2, 5, 4), f(2, 2, 5, 4), num_heads=2)
add("MultiHeadAttention", Q, Q * 2, Q + 1, num_heads=2, unidirectional=1)
LENGTHS, TOTAL = i32([4, 4]), i32(5)
PAST = f(2, 1, 4, 8), f(2, 1, 4, 8)
ONE_STEP = f(2, 1, 32), f(2, 1, 8), f(2, 1, 8)
add("GroupQueryAttention", *ONE_STEP, *PAST, LENGTHS, TOTAL, num_heads=4, kv_num_heads=1,
    out=(True, True, True))  # fmt: skip
add("GroupQueryAttention", f(2, 3, 32), f(2, 3, 16), f(2, 3, 16), f(2, 2, 0, 8), f(2, 2, 0, 8),
    i32([2, 2]), i32(3), num_heads=4, kv_num_heads=2, out=(True, True, True))  # fmt: skip
ANGLES = np.outer(np.arange(8), [1.0, 0.1, 0.01, 0.001]).astype(np.float32)
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)
TURNS = [np.tile(v, (1, 2)) for v in (COS, SIN)]
for interleaved in (0, 1):
    add("GroupQueryAttention", f(2, 1, 64), f(2, 1, 16), f(2, 1, 16), f(2, 1, 4, 16),
        f(2, 1, 4, 16), LENGTHS, TOTAL, *TURNS, num_heads=4, kv_num_heads=1, do_rotary=1,
        rotary_interleaved=interleaved, out=(True, True, True))  # fmt: skip
    add("RotaryEmbedding", f(2, 3, 16), np.array([[0, 1, 2], [3, 5, 4]]), COS, SIN,
        interleaved=interleaved)  # fmt: skip
    add("RotaryEmbedding", f(2, 2, 3, 8), np.array([2]), COS, SIN, interleaved=interleaved)
add("GroupQueryAttention", *ONE_STEP, *PAST, LENGTHS, TOTAL, num_heads=4, kv_num_heads=1,
    local_window_size=2, softcap=3.0, out=(True, True, True))  # fmt: skip
add("GroupQueryAttention", f(2, 1, 48), None, None, *PAST, LENGTHS, TOTAL, num_heads=4,
    kv_num_heads=1, out=(True, True, True))  # fmt: skip

# Quantised.
ROWS, COLUMNS = f(3, 8), i8(8, 5)
add("DynamicQuantizeMatMul", ROWS, COLUMNS, s(0.02), z(0, np.int8), const=(1,))
add(
    "DynamicQuantizeMatMul",
    ROWS,
    COLUMNS,
    np.abs(f(5)) / 50,
    np.zeros(5, np.int8),
    f(5),
    const=(1,),
)
add("DynamicQuantizeMatMul", ROWS, u8(8, 5), s(0.02), z(128), const=(1,))
add("MatMulIntegerToFloat", u8(3, 8), COLUMNS, s(0.1), s(0.02), z(120), z(0, np.int8), f(5))
add("MatMulIntegerToFloat", u8(3, 8), COLUMNS, s(0.1), np.abs(f(5)), z(120), const=(1,))
for bits in (4, 8):
    packed = u8(5, 2, 16 * bits // 8)
    zeros = u8(5, 2 * bits // 8)
    add("MatMulNBits", f(3, 32), packed, np.abs(f(5, 2)), const=(1, 2), K=32, N=5, bits=bits,
        block_size=16)  # fmt: skip
    add("MatMulNBits", f(2, 3, 32), packed, np.abs(f(5, 2)), zeros, const=(1, 2, 3), K=32, N=5,
        bits=bits, block_size=16)  # fmt: skip
PAIR = (u8(2, 3, 4), s(0.1), z(100), u8(3, 4), s(0.05), z(30))
SIGNED = (i8(2, 3, 4), s(0.1), z(3, np.int8), i8(2, 3, 4), s(0.05), z(-20, np.int8))
for name in ("QLinearAdd", "QLinearMul"):
    add(name, *PAIR, s(0.3), z(60), slack=1)
    add(name, *SIGNED, s(0.3), z(-5, np.int8), slack=1)
ONE = (u8(2, 3, 4), s(0.05), z(130))
add("QLinearSigmoid", *ONE, s(1 / 256), z(0), slack=1)
add("QLinearLeakyRelu", *ONE, s(0.05), z(90), alpha=0.2, slack=1)
add("QLinearSoftmax", *ONE, s(1 / 256), z(0), opset=13, slack=1)
add("QLinearSoftmax", *ONE, s(1 / 256), z(0), axis=1, opset=12, slack=1)
PIXELS = (u8(1, 4, 6, 6), s(0.1), z(20))
add("QLinearGlobalAveragePool", *PIXELS, s(0.08), z(10), slack=1)
add("QLinearGlobalAveragePool", u8(1, 6, 6, 4), s(0.1), z(20), s(0.08), z(10), channels_last=1,
    slack=1)  # fmt: skip
add("QLinearAveragePool", *PIXELS, s(0.1), z(20), kernel_shape=[3, 3], pads=[1] * 4, slack=1)
add("QLinearAveragePool", *PIXELS, s(0.1), z(20), kernel_shape=[2, 2], strides=[2, 2], slack=1)
add("QLinearConcat", s(0.2), z(10), u8(2, 3), s(0.1), z(5), u8(2, 4), s(0.3), z(7), axis=1, slack=1)
add("QLinearWhere", np.array([[True, False], [False, True]]), u8(2, 2), s(0.1), z(5), u8(2, 2),
    s(0.3), z(7), s(0.2), z(3), slack=1)  # fmt: skip
add("QGemm", u8(3, 8), s(0.1), z(120), COLUMNS, s(0.02), z(0, np.int8),
    i32(RNG.integers(-99, 99, 5)), const=(3,))  # fmt: skip
add("QGemm", u8(3, 8), s(0.1), z(120), i8(5, 8), s(0.02), z(0, np.int8), None, s(0.3), z(128),
    transB=1, const=(3,), slack=1)  # fmt: skip
add("QuantizeLinear", ROWS, s(0.05), z(120))
add("QuantizeLinear", ROWS, np.abs(f(8)) + s(0.1), np.zeros(8, np.int8), axis=1)
add("DequantizeLinear", u8(3, 8), s(0.05), z(120))
add("DequantizeLinear", u8(3, 8), np.abs(f(3)), u8(3), axis=0)
HELD, SCALES = u8(2, 3, 8), (s(0.02), s(0.01), z(128), z(0, np.int8))
add("QAttention", HELD, i8(8, 24), QKV_BIAS, SCALES[0], SCALES[1], None, SCALES[2], SCALES[3],
    num_heads=2, const=(1,))  # fmt: skip
add("QAttention", HELD, i8(8, 24), QKV_BIAS, SCALES[0], SCALES[1], MASK, SCALES[2], SCALES[3],
    num_heads=2, const=(1,))  # fmt: skip
add("QAttention", HELD, u8(8, 24), QKV_BIAS, SCALES[0], np.abs(f(24)) / 50, None, SCALES[2],
    u8(24), f(2, 2, 2, 3, 4), num_heads=2, unidirectional=1, const=(1,),
    out=(True, True))  # fmt: skip
TABLE, TABLE_SCALES = u8(5, 16), np.abs(f(5, 2)) + s(0.1)
add("GatherBlockQuantized", TABLE, np.array([[4, 0], [2, 2]]), TABLE_SCALES, const=(0, 2),
    block_size=16, bits=4)  # fmt: skip
add("GatherBlockQuantized", TABLE, np.array([1]), TABLE_SCALES, u8(5, 1), const=(0, 2, 3),
    block_size=16, bits=4)  # fmt: skip
STEPS = [s(v) for v in (0.02, 0.03, 0.01, 0.005, 0.015)]
POINTS = [z(v) for v in (120, 130, 100, 128, 90)]
BYTES = (u8(5, 8), u8(6, 8), u8(2, 8), u8(8), u8(8))
add("QEmbedLayerNormalization", IDS, SEGMENTS, *BYTES, MASK, *STEPS, *POINTS, out=(True, True),
    rtol=1e-3)  # fmt: skip

# ONNX's own operators in other spellings.
SQUARE = f(2, 4, 4)
add("Trilu", SQUARE)
add("Trilu", SQUARE, np.array(1), upper=0)
add("GridSample", f(1, 2, 4, 4), f(1, 3, 3, 2, scale=0.5), mode="bilinear", align_corners=1)
add("GridSample", f(1, 2, 4, 4), f(1, 3, 3, 2, scale=0.8), mode="nearest", padding_mode="border")
add(
    "GridSample", f(1, 2, 4, 4), f(1, 3, 3, 2, scale=0.8), mode="bicubic", padding_mode="reflection"
)
add("GatherND", SQUARE, np.array([[0, 1], [1, 3]]))
add("Pad", f(2, 3), np.array([0, 1, 1, 0]), const=(1,))
add("Pad", f(2, 3), np.array([0, 1, 1, 0]), s(7), const=(1,))
add("Range", s(1), s(6), s(2), const=(0, 1, 2))
add("Range", np.array(2), np.array(5), const=(0, 1))
add("ExpandDims", SQUARE, i32(1), const=(1,))
add("Unique", np.array([2, 1, 1, 3, 2], np.float32), out=(True, True, True))
add("CDist", f(3, 4), f(5, 4), metric="euclidean")
add("CDist", f(3, 4), f(5, 4), metric="sqeuclidean")
add("NhwcMaxPool", u8(1, 6, 6, 3), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
CONV = (s(0.1), z(120), i8(4, 3, 3, 3), s(0.02), z(0, np.int8), s(0.5), z(128))
add("QLinearConv", u8(1, 3, 6, 6), *CONV, const=(3,), slack=1)
add("QLinearConv", u8(1, 6, 6, 3), *CONV, const=(3,), channels_last=1, slack=1)

# An LSTM of 8-bit weights; of one sequence, since ONNX Runtime may quantise a batch in parts.
SEQUENCE, GATES = f(4, 1, 5), 4 * 3
add("DynamicQuantizeLSTM", SEQUENCE, i8(1, 5, GATES), i8(1, 3, GATES), f(1, 2 * GATES), None, None,
    None, None, np.array([0.01], np.float32), np.zeros(1, np.int8), np.array([0.02], np.float32),
    np.zeros(1, np.int8), const=(1, 2, 8, 9, 10, 11), hidden_size=3, out=(True,) * 3)  # fmt: skip
add("DynamicQuantizeLSTM", SEQUENCE, u8(2, 5, GATES), u8(2, 3, GATES), None, None, f(2, 1, 3),
    f(2, 1, 3), f(2, 9), np.array([0.01, 0.02], np.float32), np.array([120, 128], np.uint8),
    np.array([0.02, 0.01], np.float32), np.array([128, 130], np.uint8),
    const=(1, 2, 8, 9, 10, 11), hidden_size=3, direction="bidirectional",
    out=(True,) * 3)  # fmt: skip

# Text.
LINES = np.array(["the-cat a", "123", "straße bc, d_e 7"], object)
for pattern, least in (("[a-z]+", 1), ("[a-zA-Z0-9_]+", 2), (r"\w\w+", 1), (r"\w\w", 2), (".", 1)):
    add("Tokenizer", LINES, mark=0, mincharnum=least, pad_value="#", tokenexp=pattern)
