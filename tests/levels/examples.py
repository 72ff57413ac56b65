"""Small models that between them use every kind of kernel and step of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from cuvil.frontends.onnx import import_model
from cuvil.ir.graph import Graph
from cuvil.ir.text import print_ir
from cuvil.plan.plan import Plan

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Example:
    """A model as ONNX text, the shapes of its constants and of the inputs to run it on.

    An array in place of a shape is the value itself. tolerance: of native code and of rewritten
    graphs against the imported graph, relative to the largest value.
    """

    text: str
    inputs: Mapping[str, tuple[int, ...] | Array]
    constants: Mapping[str, tuple[int, ...] | Array] = field(default_factory=dict)
    tolerance: float = 2e-5

    def graph(self) -> Graph:
        """A fresh import of the model."""
        header = '<ir_version: 8, opset_import: ["" : 18]>'
        return import_model(
            onnx.parser.parse_model(header + self.text), values=_all(self.constants)
        )

    def feeds(self) -> dict[str, Array]:
        """Seeded values for the inputs."""
        return _all(self.inputs)


def _all(shapes: Mapping[str, tuple[int, ...] | Array]) -> dict[str, Array]:
    rng = np.random.default_rng(7)
    return {
        name: value if isinstance(value, np.ndarray) else _random(rng, value)
        for name, value in shapes.items()
    }


def _random(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.standard_normal(shape), np.float32)


def plan_text(plan: Plan) -> str:
    """The text of a plan's program, then of its kernels."""
    return "".join(print_ir(op) for op in (plan.program, *plan.kernels.values()))


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


EXAMPLES = {
    "pointwise": Example(
        "g (float[3, 40] x, float[40] y) => (float[3, 40] z) "
        "{ s = Add(x, y)  e = Exp(s)  z = Mul(e, x) }",
        {"x": (3, 40), "y": (40,)},
    ),
    "matmul_bias_gelu": Example(
        """g (float[9, 20] x, float[20, 37] w, float[37] b) => (float[9, 37] z)
        { m = MatMul(x, w)  s = Add(m, b)
          r = Constant<value = float {1.41421356}>()  one = Constant<value = float {1}>()
          half = Constant<value = float {0.5}>()
          d = Div(s, r)  e = Erf(d)  p = Add(e, one)  t = Mul(s, p)  z = Mul(t, half) }""",
        {"x": (9, 20)},
        {"w": (20, 37), "b": (37,)},
    ),
    "matmul_of_inputs": Example(
        "g (float[2, 3, 5, 8] x, float[2, 3, 8, 5] y) => (float[2, 3, 5, 5] z) "
        "{ m = MatMul(x, y)  z = Tanh(m) }",
        {"x": (2, 3, 5, 8), "y": (2, 3, 8, 5)},
    ),
    "matmul_of_integers": Example(
        "g (int32[4, 6] x, int32[6, 5] y) => (int32[4, 5] z) { z = MatMul(x, y) }",
        {"x": np.arange(24, dtype=np.int32).reshape(4, 6) - 9,
         "y": np.arange(30, dtype=np.int32).reshape(6, 5)},
    ),
    "conv_relu_residual": Example(
        """g (float[2, 6, 9, 8] x, float[6, 6, 3, 3] w, float[6] b) => (float[2, 6, 9, 8] z)
        { c = Conv<pads = [1, 1, 1, 1]>(x, w, b)  r = Relu(c)  z = Add(r, x) }""",
        {"x": (2, 6, 9, 8)},
        {"w": (6, 6, 3, 3), "b": (6,)},
    ),
    "conv_image": Example(
        """g (float[1, 3, 13, 12] x, float[8, 3, 3, 3] w) => (float[1, 8, 6, 5] z)
        { c = Conv<strides = [2, 2]>(x, w)  z = Sigmoid(c) }""",
        {"x": (1, 3, 13, 12)},
        {"w": (8, 3, 3, 3)},
    ),
    "conv_groups": Example(
        """g (float[1, 8, 6, 6] x, float[12, 4, 3, 3] w) => (float[1, 12, 4, 4] z)
        { z = Conv<group = 2>(x, w) }""",
        {"x": (1, 8, 6, 6)},
        {"w": (12, 4, 3, 3)},
    ),
    "conv_transposed": Example(
        """g (float[1, 4, 5, 5] x, float[4, 3, 3, 3] w) => (z)
        { z = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w) }""",
        {"x": (1, 4, 5, 5)},
        {"w": (4, 3, 3, 3)},
    ),
    "depthwise": Example(
        """g (float[1, 20, 7, 7] x, float[20, 1, 3, 3] w, float[20] b) => (float[1, 20, 4, 4] z)
        { c = Conv<group = 20, strides = [2, 2], pads = [1, 1, 1, 1]>(x, w, b)
          z = HardSwish(c) }""",
        {"x": (1, 20, 7, 7)},
        {"w": (20, 1, 3, 3), "b": (20,)},
    ),
    "pools": Example(
        """g (float[1, 5, 8, 8] x) => (a, b)
        { m = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(x)
          a = AveragePool<kernel_shape = [2, 2]>(m)  b = GlobalAveragePool(m) }""",
        {"x": (1, 5, 8, 8)},
    ),
    "softmax": Example(
        "g (float[4, 3, 17] x) => (z) { s = Softmax<axis = 1>(x)  z = Log(s) }",
        {"x": (4, 3, 17)},
    ),
    "layer_norm": Example(
        """g (float[5, 24] x, float[24] s, float[24] b) => (z)
        { n = LayerNormalization<axis = -1>(x, s, b)  z = Add(n, x) }""",
        {"x": (5, 24)},
        {"s": (24,), "b": (24,)},
    ),
    "attention": Example(
        """g (float[2, 6, 8] q, float[2, 6, 8] k, float[2, 6, 8] v) => (z)
        { t = Transpose<perm = [0, 2, 1]>(k)  a = MatMul(q, t)
          c = Constant<value = float {0.35355339}>()  m = Mul(a, c)
          s = Softmax<axis = -1>(m)  z = MatMul(s, v) }""",
        {"q": (2, 6, 8), "k": (2, 6, 8), "v": (2, 6, 8)},
    ),
    "views": Example(
        """g (float[4, 6] x, float[4, 2] y) => (z, w)
        { c = Concat<axis = 1>(x, y)  t = Transpose<perm = [1, 0]>(c)
          a = Constant<value = int64[1] {1}>()  e = Constant<value = int64[1] {7}>()
          ax = Constant<value = int64[1] {0}>()  s = Constant<value = int64[1] {2}>()
          z = Slice(t, a, e, ax, s)
          p, q = Split<axis = 1, num_outputs = 2>(x)  w = Sub(q, p) }""",
        {"x": (4, 6), "y": (4, 2)},
    ),
    "pad_and_gather": Example(
        """g (float[5, 4] x, int64[3] at) => (z)
        { p = Constant<value = int64[4] {1, 2, 0, 1}>()
          y = Pad<mode = "reflect">(x, p)  z = Gather<axis = 0>(y, at) }""",
        {"x": (5, 4), "at": i64(0, -1, 2)},
    ),
    "reductions": Example(
        """g (float[3, 4, 5] x) => (a, b, c)
        { ax = Constant<value = int64[2] {0, 2}>()  a = ReduceSum(x, ax)
          l = Constant<value = int64[1] {1}>()  b = ReduceMax<keepdims = 0>(x, l)
          c = ArgMax<axis = 2>(x) }""",
        {"x": (3, 4, 5)},
    ),
    "if": Example(
        """g (float[3, 4] x, bool c) => (float[3, 4] z)
        { y = Relu(x)
          r = If(c)<then_branch = t () => (float[3, 4] p) { p = Exp(y) },
                    else_branch = e () => (float[3, 4] q) { n = Neg(x)  q = Sub(n, y) }>
          z = Add(r, x) }""",
        {"x": (3, 4), "c": np.array(True)},
    ),
    "loop": Example(
        """g (float[4, 6] x, float[6, 6] w) => (float[4, 6] z, float[5, 4, 6] all)
        { n = Constant<value = int64 {5}>()  yes = Constant<value = bool {1}>()
          z, all = Loop(n, yes, x)<body = b (int64 i, bool c, float[4, 6] a)
            => (bool k, float[4, 6] next, float[4, 6] out)
            { k = Identity(c)  m = MatMul(a, w)  next = Tanh(m)  out = Add(a, x) }> }""",
        {"x": (4, 6)},
        {"w": (6, 6)},
    ),
    "lstm": Example(
        """g (float[5, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r) => (y, h)
        { y, h = LSTM<hidden_size = 4>(x, w, r) }""",
        {"x": (5, 2, 3)},
        {"w": (1, 16, 3), "r": (1, 16, 4)},
    ),
    "quantized": Example(
        """g (float[3, 40] x) => (z)
        { s = Constant<value = float {0.05}>()  p = Constant<value = uint8 {120}>()
          q = QuantizeLinear(x, s, p)  d = DequantizeLinear(q, s, p)  z = Relu(d) }""",
        {"x": (3, 40)},
    ),
    "halves": Example(
        """g (float[4, 33] x) => (z)
        { h = Cast<to = 10>(x)  e = Exp(h)  s = Softmax(e)  z = Cast<to = 1>(s) }""",
        {"x": (4, 33)},
        tolerance=2e-3,
    ),
    "sorted": Example(
        """g (float[3, 12] x) => (v, i)
        { k = Constant<value = int64[1] {4}>()  v, i = TopK<axis = 1>(x, k) }""",
        {"x": (3, 12)},
    ),
    "found_extents": Example(
        """g (float[N, 3] x) => (z, at, n)
        { a = Abs(x)  o = Constant<value = float {0.5}>()  m = Greater(a, o)
          at = NonZero(m)  t = Transpose<perm = [1, 0]>(at)  z = GatherND(x, t)
          n = Size(z) }""",
        {"x": (6, 3)},
    ),
    "symbolic": Example(
        """g (float[B, S, 8] x, float[8, 33] w, float[33] b) => (y, z)
        { m = MatMul(x, w)  s = Add(m, b)  y = Softmax<axis = 1>(s)
          t = Transpose<perm = [0, 2, 1]>(s)  z = MatMul(s, t) }""",
        {"x": (2, 5, 8)},
        {"w": (8, 33), "b": (33,)},
    ),
    "symbolic_conv": Example(
        """g (float[N, 4, H, W] x, float[6, 4, 3, 3] w) => (z)
        { c = Conv<pads = [1, 1, 1, 1]>(x, w)  r = Relu(c)
          z = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r) }""",
        {"x": (2, 4, 6, 9)},
        {"w": (6, 4, 3, 3)},
    ),
}  # fmt: skip
