"""What `tools.bench.threads` says of a model's kernels and of the most that threads could gain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil.engine.cache_key import Wanted
from cuvil.engine.front_door import build_wanted, load_built
from cuvil.options import Options
from tools.bench.threads import Gain, Kernel, best_share, kernels_of, weight_bytes


def test_a_kernel_takes_as_long_as_memory_hands_over_its_weights():
    gain = Gain(speedup=2.0, rate=1e9)
    computes = Kernel("a", alone=8.0, weights=1_000_000_000)
    reads = Kernel("b", alone=2.0, weights=3_000_000_000)
    assert (computes.least(gain), reads.least(gain)) == (4.0, 3.0)
    assert best_share([computes], gain) == 1.0
    assert best_share([computes, reads], gain) == pytest.approx(10 / 7 / 2)


@pytest.mark.parametrize(("cache", "streamed"), [(0, True), (1 << 30, False)])
def test_kernels_with_the_weights_that_come_from_memory(tmp_path: Path, cache: int, streamed: bool):
    weights = np.ones((64, 128), np.float32)
    path = _save_product(tmp_path / "m.onnx", weights)
    build = build_wanted(path, Wanted(Options()), lambda stage: None)
    engines = [load_built(build, n) for n in (1, 2)]
    feed = {"x": np.ones((5, 64), np.float32)}
    (kernel,) = kernels_of(build.built.plan, engines, feed, seconds=0, cache=cache)
    assert (kernel.launches, kernel.weights) == (1, weights.nbytes if streamed else 0)
    assert kernel.alone > 0 < kernel.together
    assert weight_bytes(build.built.plan) == [(kernel.name, weights.nbytes)]


def _save_product(path: Path, weights: np.ndarray) -> Path:
    """x[5, 64] times the weights."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, weights.shape[0]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path
