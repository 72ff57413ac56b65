"""What `tools.bench.threads` says of a model's kernels and of the most that threads could gain."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from cuvil.engine.cache_key import Wanted
from cuvil.engine.front_door import build_wanted, load_built
from cuvil.options import Options
from tests.small_models import model
from tools.bench.threads import Gain, Kernel, best_share, kernels_of, weight_bytes


def test_a_kernel_takes_as_long_as_memory_hands_over_its_weights():
    gain = Gain(speedup=2.0, rate=1e9)
    computes = Kernel("a", alone=8.0, weights=1_000_000_000)
    reads = Kernel("b", alone=2.0, weights=3_000_000_000)
    assert (computes.least(gain), reads.least(gain)) == (4.0, 3.0)
    assert best_share([computes], gain) == 1.0
    assert best_share([computes, reads], gain) == pytest.approx(10 / 7 / 2)


@pytest.mark.parametrize(("cache", "streamed"), [(0, True), (1 << 30, False)])
def test_kernels_with_the_weights_that_come_from_memory(cache: int, streamed: bool):
    weights = np.ones((64, 128), np.float32)
    product = model("product (float[5, 64] x) => (float[5, 128] y) { y = MatMul(x, w) }")
    product.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    build = build_wanted(product, Wanted(Options()), lambda stage: None)
    engines = [load_built(build, n) for n in (1, 2)]
    feed = {"x": np.ones((5, 64), np.float32)}
    (kernel,) = kernels_of(build.built.plan, engines, feed, seconds=0, cache=cache)
    assert (kernel.launches, kernel.weights) == (1, weights.nbytes if streamed else 0)
    assert kernel.alone > 0 < kernel.together
    assert weight_bytes(build.built.plan) == [(kernel.name, weights.nbytes)]
