"""Models of a few nodes, and folders of what they compile to, made once per test run."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.options import Options

WEIGHT = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
BIAS = np.linspace(-1, 1, 16, dtype=np.float32)
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def affine(name: str, scale: float, shift: float) -> onnx.ModelProto:
    """y = x * scale + shift for x of 4 floats."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "shift"], ["y"]),
    ]
    constants = {"scale": np.float32(scale), "shift": np.float32(shift)}
    return _model(name, nodes, {"x": [4]}, {"y": [4]}, constants)


def dense() -> onnx.ModelProto:
    """y = relu(x @ WEIGHT + BIAS) for x of [n, 8]."""
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    constants = {"weight": WEIGHT, "bias": BIAS}
    return _model("dense", nodes, {"x": ["n", 8]}, {"y": ["n", 16]}, constants)


def dense_reference(x: np.ndarray) -> np.ndarray:
    """What `dense` computes."""
    return np.maximum(x @ WEIGHT + BIAS, 0)


def stages() -> onnx.ModelProto:
    """Softmax of (x @ x^T) for x of [16, 8], which needs an arena, and TABLE, a constant."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("MatMul", ["x", "turned"], ["product"]),
        helper.make_node("Softmax", ["product"], ["y"], axis=-1),
        helper.make_node("Identity", ["table"], ["constant"]),
    ]
    outputs = {"y": [16, 16], "constant": [2, 3]}
    return _model("stages", nodes, {"x": [16, 8]}, outputs, {"table": TABLE})


def wide() -> onnx.ModelProto:
    """y = the sum of 12 inputs of 4 floats."""
    names = [f"x{i}" for i in range(12)]
    node = helper.make_node("Sum", names, ["y"])
    return _model("wide", [node], {name: [4] for name in names}, {"y": [4]}, {})


def found() -> onnx.ModelProto:
    """y = the elements of x [n] above 0, and x as pairs [2, n / 2]: n must be even."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["positive"]),
        helper.make_node("Compress", ["x", "positive"], ["y"]),
        helper.make_node("Reshape", ["x", "shape"], ["pairs"]),
    ]
    constants = {"zero": np.float32(0), "shape": np.array([2, -1])}
    return _model("found", nodes, {"x": ["n"]}, {"y": ["k"], "pairs": [2, "m"]}, constants)


def steps() -> onnx.ModelProto:
    """y = 0, 1, 2, ... below a limit: as long as the limit says."""
    node = helper.make_node("Range", ["zero", "limit", "one"], ["y"])
    constants = {"zero": np.float32(0), "one": np.float32(1)}
    return _model("steps", [node], {"limit": []}, {"y": ["k"]}, constants)


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


def _model(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    outputs: dict[str, list[int | str]],
    constants: dict[str, np.ndarray],
) -> onnx.ModelProto:
    def values(shapes: dict[str, list[int | str]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]

    tensors = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, name, values(inputs), values(outputs), tensors)
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


_MODELS = {
    "add1": lambda: affine("add1", 1, 1),
    "mul2": lambda: affine("mul2", 2, 0),
    "twin": lambda: affine("twin", 1, 1),  # add1 under another name
    "dense": dense,
    "stages": stages,
    "wide": wide,
    "found": found,
    "steps": steps,
    "words": words,
    "pairs": pairs,
}
_ELEMENTS = {"pairs": {"items": 2, "shift": 1, "mask": 0}}


@lru_cache
def compiled(name: str) -> Artefact:
    """A model of this module as `.so`, `.a` and `.o` with every variant, in a folder of its own."""
    options = Options(target="x86_64", name=name, elements=_ELEMENTS.get(name, {}))
    return compile_to_folder(_MODELS[name](), _root() / name, options, emit=("so", "a", "o"))


@lru_cache
def _root() -> Path:
    folder = tempfile.mkdtemp(prefix="cuvil-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
