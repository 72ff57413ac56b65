"""Small ONNX models whose results a person can tell, as messages and as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

HEADER = '<ir_version: 8, opset_import: ["" : 18]>'


def model(graph: str) -> onnx.ModelProto:
    """From the text of a graph: `add (float[4] x) => (float[4] y) { y = Add(x, x) }`."""
    return onnx.parser.parse_model(HEADER + graph)


def add() -> onnx.ModelProto:
    """z = x + y, of four elements each."""
    return model("add (float[4] x, float[4] y) => (float[4] z) { z = Add(x, y) }")


def dynamic() -> onnx.ModelProto:
    """total = x + y and twice = 2 * total for x, y of [N, 3]; the two nodes have names."""
    made = model(
        "dynamic (float[N, 3] x, float[N, 3] y) => (float[N, 3] total, float[N, 3] twice) "
        "{ total = Add(x, y)  twice = Add(total, total) }"
    )
    made.graph.node[0].name, made.graph.node[1].name = "sum", "double"
    return made


def dense(
    bias: bool = True, seed: int = 0, rows: int | str = "N", columns: int = 5
) -> onnx.ModelProto:
    """y = relu(x @ w + b) for x of [rows, 8], random w of [8, columns] and b from -1 to 1."""
    steps = "h = MatMul(x, w)  s = Add(h, b)" if bias else "s = MatMul(x, w)"
    made = model(
        f"dense (float[{rows}, 8] x) => (float[{rows}, {columns}] y) {{ {steps}  y = Relu(s) }}"
    )
    arrays = {"w": np.random.default_rng(seed).standard_normal((8, columns), np.float32)}
    arrays |= {"b": np.linspace(-1, 1, columns, dtype=np.float32)} if bias else {}
    made.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in arrays.items())
    return made


def dense_result(made: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """What `dense` computes."""
    arrays = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    return np.maximum(x @ arrays["w"] + arrays.get("b", np.float32(0)), 0)


def endless() -> onnx.ModelProto:
    """A loop of four billion steps: runs until it is stopped."""
    return model(
        """endless (float[64] x) => (float[64] y) {
          n = Constant<value = int64 {4000000000}>()
          yes = Constant<value = bool {1}>()
          y = Loop(n, yes, x)<body = body (int64 i, bool c, float[64] a) => (bool k, float[64] b)
            { k = Identity(c)  b = Sin(a) }>
        }"""
    )


def affine(name: str, scale: float, shift: float) -> onnx.ModelProto:
    """y = x * scale + shift for x of 4 floats."""
    return model(
        f"{name} (float[4] x) => (float[4] y) <float scale = {{{scale:.1f}}}, "
        f"float shift = {{{shift:.1f}}}> {{ scaled = Mul(x, scale)  y = Add(scaled, shift) }}"
    )


def stages() -> onnx.ModelProto:
    """Softmax of (x @ x^T) for x of [16, 8], which needs an arena, and 0 to 5 as [2, 3]."""
    return model(
        """stages (float[16, 8] x) => (float[16, 16] y, float[2, 3] constant)
        <float[2, 3] table = {0, 1, 2, 3, 4, 5}> {
            turned = Transpose(x)
            product = MatMul(x, turned)
            y = Softmax<axis = -1>(product)
            constant = Identity(table)
        }"""
    )


def wide() -> onnx.ModelProto:
    """y = the sum of 12 inputs of 4 floats."""
    names = [f"x{i}" for i in range(12)]
    inputs = ", ".join(f"float[4] {name}" for name in names)
    return model(f"wide ({inputs}) => (float[4] y) {{ y = Sum({', '.join(names)}) }}")


def found() -> onnx.ModelProto:
    """y = the elements of x [n] above 0, and x as pairs [2, n / 2]: n must be even."""
    return model(
        """found (float[n] x) => (float[k] y, float[2, m] pairs)
        <float zero = {0.0}, int64[2] shape = {2, -1}> {
            positive = Greater(x, zero)
            y = Compress(x, positive)
            pairs = Reshape(x, shape)
        }"""
    )


def steps() -> onnx.ModelProto:
    """y = 0, 1, 2, ... below a limit: as long as the limit says."""
    return model(
        "steps (float limit) => (float[k] y) <float zero = {0.0}, float one = {1.0}> "
        "{ y = Range(zero, limit, one) }"
    )


def words() -> onnx.ModelProto:
    """Of words x [n]: marked with a !, split at spaces, a number of some, and a label of these."""
    return onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
        words (string[n] x) => (string[n] marked, string[?, ?] parts, int64[n] id, string[n] label)
        {
            mark = Constant<value_string = "!">()
            marked = StringConcat(x, mark)
            parts, counts = StringSplit(x)
            id = ai.onnx.ml.LabelEncoder<keys_strings = ["été"], values_int64s = [7]>(x)
            label = ai.onnx.ml.LabelEncoder
                <keys_int64s = [7], values_strings = ["summer"], default_string = "other">(id)
        }"""
    )


def pairs() -> onnx.ModelProto:
    """sums = items + shift for a sequence of two, kept = shift, dropped = mask, and the elements
    above 0 of the first item."""
    return onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        pairs (seq(float[?]) items, optional(float) shift, optional(float[2]) mask)
            => (seq(float[?]) sums, optional(float) kept, optional(float[2]) dropped,
                float[?] positive)
        {
            zero = Constant<value_int = 0>()
            one = Constant<value_int = 1>()
            nothing = Constant<value_float = 0.0>()
            first = SequenceAt(items, zero)
            second = SequenceAt(items, one)
            given = OptionalGetElement(shift)
            a = Add(first, given)
            b = Add(second, given)
            sums = SequenceConstruct(a, b)
            kept = Identity(shift)
            dropped = Identity(mask)
            above = Greater(first, nothing)
            positive = Compress(first, above)
        }"""
    )


def saved(made: onnx.ModelProto, path: Path) -> Path:
    """The model in a file."""
    path.write_bytes(made.SerializeToString())
    return path


def saved_with_data(made: onnx.ModelProto, path: Path, data: str = "weights.data") -> Path:
    """The model in a file, with its initializers in a file beside it."""
    onnx.save(
        made, path, save_as_external_data=True, location=data, size_threshold=0,
        all_tensors_to_one_file=True,
    )  # fmt: skip
    return path
