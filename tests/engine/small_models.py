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


def dense(bias: bool = True, seed: int = 0, rows: int | str = "N") -> onnx.ModelProto:
    """y = relu(x @ w + b) for x of [rows, 8] and w of [8, 5]."""
    rng = np.random.default_rng(seed)
    steps = "h = MatMul(x, w)  s = Add(h, b)" if bias else "s = MatMul(x, w)"
    made = model(f"dense (float[{rows}, 8] x) => (float[{rows}, 5] y) {{ {steps}  y = Relu(s) }}")
    arrays = {"w": (8, 5), "b": (5,)} if bias else {"w": (8, 5)}
    made.graph.initializer.extend(
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in arrays.items()
    )
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
