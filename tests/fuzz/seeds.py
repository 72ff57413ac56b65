"""The models that are mutated: a small network, a real one, and one with all that can be nested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tools.models.sources import Packaged


def network(_: Path) -> bytes:
    """Convolution, batch norm, pooling, a residual, shape arithmetic, Gemm, softmax."""

    rng = np.random.default_rng(5)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 4, name)

    constants = [
        weight("w1", 8, 3, 3, 3), weight("w2", 8, 8, 1, 1), weight("fc", 8 * 4, 5), weight("b", 5),
        *(weight(n, 8) for n in ("scale", "bias", "mean")),
        numpy_helper.from_array(np.ones(8, np.float32), "var"),
        numpy_helper.from_array(np.array([-1], np.int64), "rest"),
        numpy_helper.from_array(np.array([0], np.int64), "zero"),
        numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"),
    ]  # fmt: skip
    make = helper.make_node
    nodes = [
        make("Conv", ["x", "w1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
        make("BatchNormalization", ["c1", "scale", "bias", "mean", "var"], ["bn"]),
        make("Relu", ["bn"], ["r"]),
        make("Conv", ["r", "w2"], ["c2"], kernel_shape=[1, 1]),
        make("Add", ["c2", "r"], ["sum"]),
        make("Resize", ["sum", "", "scales"], ["up"], mode="nearest"),
        make("MaxPool", ["up"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        make("AveragePool", ["p"], ["q"], kernel_shape=[2, 2], strides=[2, 2]),
        make("Shape", ["q"], ["s"]),
        make("Gather", ["s", "zero"], ["batch"]),
        make("Concat", ["batch", "rest"], ["wanted"], axis=0),
        make("Reshape", ["q", "wanted"], ["flat"]),
        make("Gemm", ["flat", "fc", "b"], ["logits"]),
        make("Softmax", ["logits"], ["y"], axis=-1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])
    graph = helper.make_graph(nodes, "network", [x], [y], constants)
    return _model(graph)


def real(_: Path) -> bytes:
    """silero-vad as its package ships it."""
    return Packaged("silero_vad", "data/silero_vad.onnx", "silero-vad").location().read_bytes()


def nested(folder: Path) -> bytes:
    """External data, If in If, Loop, Scan, functions that call functions, optional inputs."""
    make, info = helper.make_node, helper.make_tensor_value_info
    rng = np.random.default_rng(5)
    data = rng.standard_normal((6, 4)).astype(np.float32)
    (folder / "weights.bin").write_bytes(bytes(64) + data.tobytes())
    outside = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=data.shape)
    outside.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "64"), ("length", "96")):
        outside.external_data.add(key=key, value=value)
    empty = helper.make_empty_tensor_value_info
    deep = helper.make_graph([make("Neg", ["h"], ["d"])], "deep", [], [empty("d")])
    flat = helper.make_graph([make("Identity", ["h"], ["f"])], "flat", [], [empty("f")])
    then = helper.make_graph(
        [make("If", ["cond"], ["t"], then_branch=deep, else_branch=flat)], "then", [], [empty("t")]
    )
    other = helper.make_graph([make("Twice", ["h"], ["e"], domain="own")], "else", [], [empty("e")])
    body = helper.make_graph(
        [make("Add", ["v", "step"], ["n"]), make("Identity", ["c"], ["go"]),
         make("Identity", ["n"], ["out"])],
        "body", [info("i", 7, []), info("c", 9, []), info("v", 1, [2, 4])],
        [empty("go"), empty("n"), empty("out")],
    )  # fmt: skip
    nodes = [
        make("MatMul", ["x", "w"], ["h"]),
        make("If", ["cond"], ["z"], then_branch=then, else_branch=other),
        make("Loop", ["count", "", "z"], ["end", "all"], body=body),
        make("Pad", ["end", "pads", ""], ["padded"]),
        make("Slice", ["all", "zero", "two"], ["part"]),
        make("LSTM", ["all", "lw", "lr"], ["", "last"], hidden_size=2),
    ]
    constants = [
        outside, numpy_helper.from_array(np.float32(0.5), "step"),
        numpy_helper.from_array(np.int64(3), "count"),
        numpy_helper.from_array(np.array([0, 1, 0, 1], np.int64), "pads"),
        numpy_helper.from_array(np.array([0], np.int64), "zero"),
        numpy_helper.from_array(np.array([2], np.int64), "two"),
        numpy_helper.from_array(rng.standard_normal((1, 8, 4)).astype(np.float32), "lw"),
        numpy_helper.from_array(rng.standard_normal((1, 8, 2)).astype(np.float32), "lr"),
    ]  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    once = helper.make_function(
        "own", "Once", ["a"], ["b"], [make("Elu", ["a"], ["b"], alpha=0.5)], opsets
    )
    calls = [make("Once", ["a"], ["m"], domain="own"), make("Add", ["m", "a"], ["b"])]
    twice = helper.make_function("own", "Twice", ["a"], ["b"], calls, opsets)
    graph = helper.make_graph(
        nodes, "nested", [info("x", 1, [2, 6]), info("cond", 9, [])],
        [empty("padded"), empty("part"), empty("last")], constants,
    )  # fmt: skip
    return _model(graph, [once, twice])


def _model(graph: onnx.GraphProto, functions: list[onnx.FunctionProto] | None = None) -> bytes:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=functions or [], ir_version=8)
    return bytes(model.SerializeToString())


SEEDS: dict[str, Callable[[Path], bytes]] = {"network": network, "nested": nested, "real": real}
