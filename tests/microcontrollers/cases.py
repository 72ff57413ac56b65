"""Small models that use what is different there: indices, soft floats, wide integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper

HEADER = '<ir_version: 8, opset_import: ["" : 18]>'


@dataclass(frozen=True)
class Case:
    """A model as text, constants [shape or array] by name, inputs, extents of symbols (name, the
    largest, this time's), outputs whose shape the run finds."""

    text: str
    inputs: Mapping[str, np.ndarray]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    extents: Sequence[tuple[str, int, int]] = ()
    shapes: Sequence[bool] = ()

    def model(self, name: str) -> onnx.ModelProto:
        """The model under a name."""
        made = onnx.parser.parse_model(f"{HEADER} {name} {self.text}")
        made.graph.initializer.extend(
            numpy_helper.from_array(a, n) for n, a in self.constants.items()
        )
        return made


_random = np.random.default_rng(7)


def _floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    return _random.standard_normal(shape).astype(dtype)


CASES: dict[str, Case] = {
    "dense": Case(
        "(float[3, 20] x) => (float[3, 13] y) { a = MatMul(x, w)  b = Add(a, c)  y = Relu(b) }",
        {"x": _floats(3, 20)},
        {"w": _floats(20, 13), "c": _floats(13)},
    ),
    "image": Case(
        """(float[1, 3, 9, 11] x) => (float[1, 10] y) {
            a = Conv<pads = [1, 1, 1, 1], strides = [2, 1]>(x, w, c)
            b = Relu(a)
            d = MaxPool<kernel_shape = [2, 2]>(b)
            e = Conv<group = 6, pads = [1, 1, 1, 1]>(d, v)
            f = GlobalAveragePool(e)
            g = Flatten(f)
            h = Gemm(g, u)
            y = Softmax(h)
        }""",
        {"x": _floats(1, 3, 9, 11)},
        {"w": _floats(6, 3, 3, 3), "c": _floats(6), "v": _floats(6, 1, 3, 3), "u": _floats(6, 10)},
    ),
    "keywords": Case(
        """(float[1, 1, 49, 10] sound) => (float[1, 12] y) {
            a = Conv<pads = [4, 1, 5, 1], strides = [2, 2]>(sound, w0)
            b = BatchNormalization(a, s, o, m, v)
            c = Relu(b)
            d = Conv<group = 8, pads = [1, 1, 1, 1]>(c, w1)
            e = Relu(d)
            f = Conv(e, w2)
            g = Relu(f)
            h = Conv<group = 8, pads = [1, 1, 1, 1]>(g, w3)
            i = Relu(h)
            j = Conv(i, w4)
            k = Relu(j)
            l = GlobalAveragePool(k)
            n = Flatten(l)
            p = Gemm(n, w5)
            y = Softmax(p)
        }""",
        {"sound": _floats(1, 1, 49, 10)},
        {
            "w0": _floats(8, 1, 10, 4),
            "w1": _floats(8, 1, 3, 3),
            "w2": _floats(8, 8, 1, 1),
            "w3": _floats(8, 1, 3, 3),
            "w4": _floats(8, 8, 1, 1),
            "w5": _floats(8, 12) / 20,
            "s": _floats(8),
            "o": _floats(8),
            "m": _floats(8),
            "v": abs(_floats(8)) + 1,
        },
    ),
    "norm": Case(
        """(float[4, 24] x) => (float[4, 24] y, float[4, 24] z) {
            y = LayerNormalization(x, g, b)
            a = Abs(x)
            s = Sqrt(a)
            e = Erf(x)
            z = Add(s, e)
        }""",
        {"x": _floats(4, 24)},
        {"g": _floats(24), "b": _floats(24)},
    ),
    "doubles": Case(
        """(double[3, 7] x) => (double[3, 7] y, double[3, 1] m) {
            a = Abs(x)
            b = Sqrt(a)
            c = Exp(x)
            y = Mul(b, c)
            m = ReduceMean<keepdims = 1>(y, axes)
        }""",
        {"x": _floats(3, 7, dtype="float64")},
        {"axes": np.array([1])},
    ),
    "halves": Case(
        "(float16[2, 9] x) => (float16[2, 9] y) { a = Mul(x, x)  y = Tanh(a) }",
        {"x": _floats(2, 9, dtype="float16")},
    ),
    "integers": Case(
        """(int64[9] x, int64[9] d) => (int64[9] q, int64[9] r, int64[9] p, int32[9] low) {
            q = Div(x, d)
            r = Mod(x, d)
            p = Mul(x, x)
            low = Cast<to = 6>(p)
        }""",
        {
            "x": _random.integers(0, 1 << 40, 9),
            "d": np.array([3, 7, 1 << 33, 10, 1, 2, 1 << 20, 99, 5]),
        },
    ),
    "gathers": Case(
        """(float[6, 5] x, int64[4] at) => (float[4, 5] y, int64[6] best, int64[6, 3] order) {
            y = Gather(x, at)
            best = ArgMax<axis = 1, keepdims = 0>(x)
            top, order = TopK(x, three)
        }""",
        {"x": _floats(6, 5), "at": np.array([5, 0, -1, 2])},
        {"three": np.array([3])},
    ),
    "bytes": Case(
        "(uint8[5, 64] x) => (int32[5, 20] y) { y = MatMulInteger(x, w, z) }",
        {"x": _random.integers(0, 256, (5, 64), np.uint8)},
        {"w": _random.integers(-128, 128, (64, 20), np.int8), "z": np.array(128, np.uint8)},
    ),
    "least": Case(
        "(uint8[1, 24] x) => (int32[1, 10] y) { y = MatMulInteger(x, w) }",
        {"x": np.full((1, 24), 255, np.uint8)},
        {"w": np.full((24, 10), -128, np.int8)},
    ),
    "codes": Case(
        """(uint8[1, 4, 6, 6] x) => (uint8[1, 8, 6, 6] y) {
            y = QLinearConv<pads = [1, 1, 1, 1]>(x, xs, xz, w, ws, wz, ys, yz)
        }""",
        {"x": _random.integers(0, 256, (1, 4, 6, 6), np.uint8)},
        {
            "xs": np.array(0.02, np.float32),
            "xz": np.array(120, np.uint8),
            "w": _random.integers(-128, 128, (8, 4, 3, 3), np.int8),
            "ws": np.array(0.01, np.float32),
            "wz": np.array(0, np.int8),
            "ys": np.array(0.5, np.float32),
            "yz": np.array(100, np.uint8),
        },
    ),
    "sequence": Case(
        """(float[5, 1, 3] x) => (float[5, 1, 1, 4] y) { y = LSTM<hidden_size = 4>(x, w, r, b) }""",
        {"x": _floats(5, 1, 3)},
        {"w": _floats(1, 16, 3), "r": _floats(1, 16, 4), "b": _floats(1, 32)},
    ),
    "rows": Case(
        "(float[N, 6] x) => (float[N, 5] y, float[N] s) "
        "{ a = MatMul(x, w)  y = Sigmoid(a)  s = ReduceSum<keepdims = 0>(y, axes) }",
        {"x": _floats(5, 6)},
        {"w": _floats(6, 5), "axes": np.array([1])},
        (("N", 8, 5),),
    ),
    "found": Case(
        "(float[8] x) => (int64[1, k] y) { y = NonZero(x) }",
        {"x": np.array([0, 1, 0, 2, 3, 0, 0, 4], np.float32)},
        shapes=(True,),
    ),
    "choice": Case(
        """(float[4] x, bool c) => (float[4] y) {
            y = If(c) <then_branch = t () => (float[4] a) { a = Neg(x) },
                       else_branch = e () => (float[4] b) { b = Ceil(x) }>
        }""",
        {"x": _floats(4), "c": np.array(False)},
    ),
}
