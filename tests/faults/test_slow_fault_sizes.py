"""Sizes that no memory holds and numbers that no size is: an error in good time, or an answer."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from cuvil.errors import Error, InternalError
from tests.faults.cases import Array, Model, arange, f32

BIG = 1 << 62
HUGE = (1 << 31, BIG, (1 << 63) - 1, -1, -(1 << 63))


def line(m: Model) -> str:
    """3 elements, of which the compiler does not know how many they are."""
    return m.feed(arange(3), dims=["n"])


def image(m: Model) -> str:
    return m.feed(arange(1, 4, 3, 3), dims=["b", 4, "h", "w"])


# `v` makes a vector of int64, a constant or an input; `s` a scalar.
SIZES: dict[str, Callable[[Model, Any, Any, int], Any]] = {
    "expand": lambda m, v, s, n: m.op("Expand", line(m), v(n, 1)),
    "expand_more": lambda m, v, s, n: m.op("Expand", line(m), v(n, n, 3)),
    "tile": lambda m, v, s, n: m.op("Tile", line(m), v(n)),
    "tile_matrix": lambda m, v, s, n: m.op("Tile", m.op("Reshape", line(m), m.const([1, -1], "i8")),
                                           v(n, n)),
    "constant_of_shape": lambda m, v, s, n: m.op("ConstantOfShape", v(n)),
    "constant_of_shapes": lambda m, v, s, n: m.op("ConstantOfShape", v(n, 1 << 33)),
    "range": lambda m, v, s, n: m.op("Range", s(0), s(n), s(1)),
    "range_down": lambda m, v, s, n: m.op("Range", s(n), s(0), s(-1)),
    "range_all": lambda m, v, s, n: m.op("Range", s(-(1 << 63)), s(n), s(3)),
    "pad": lambda m, v, s, n: m.op("Pad", line(m), v(n, 0)),
    "pad_behind": lambda m, v, s, n: m.op("Pad", line(m), v(1, n), mode="edge"),
    "pad_both": lambda m, v, s, n: m.op("Pad", line(m), v(n, n), mode="reflect"),
    "reshape": lambda m, v, s, n: m.op("Reshape", line(m), v(n, -1)),
    "reshape_product": lambda m, v, s, n: m.op("Reshape", line(m), v(n, n, 3)),
    "one_hot": lambda m, v, s, n: m.op("OneHot", m.op("Cast", line(m), to=7), s(n),
                                       m.const([0, 1], "f4")),
    "top_k": lambda m, v, s, n: m.op("TopK", line(m), v(n), outputs=2)[0],
    "slice": lambda m, v, s, n: m.op("Slice", line(m), v(n), v(5)),
    "slice_end": lambda m, v, s, n: m.op("Slice", line(m), v(0), v(n)),
    "split": lambda m, v, s, n: m.op("Split", line(m), v(n, 3), outputs=2)[1],
    "resize": lambda m, v, s, n: m.op("Resize", image(m), None, None, v(1, 4, n, 3)),
    "resize_linear": lambda m, v, s, n: m.op("Resize", image(m), None, None, v(1, 4, n, n),
                                             mode="linear"),
    "trilu": lambda m, v, s, n: m.op("Trilu", m.op("Reshape", line(m), m.const([1, -1], "i8")),
                                     s(n)),
    "gather": lambda m, v, s, n: m.op("Gather", line(m), v(n)),
    "center_crop": lambda m, v, s, n: m.op("CenterCropPad", line(m), v(n)),
    "hann": lambda m, v, s, n: m.op("HannWindow", s(n)),
    "mel": lambda m, v, s, n: m.op("MelWeightMatrix", s(8), s(n), s(8000),
                                   m.const(f32(0)), m.const(f32(4000))),
    "dft": lambda m, v, s, n: m.op("DFT", m.op("Reshape", line(m), m.const([1, -1, 1], "i8")),
                                   s(n)),
    "col2im": lambda m, v, s, n: m.op("Col2Im", m.feed(arange(1, 4, 4)), v(n, n), v(2, 2)),
    "unsqueeze": lambda m, v, s, n: m.op("Unsqueeze", line(m), v(n)),
    "cumsum": lambda m, v, s, n: m.op("CumSum", line(m), s(n)),
    "upsample": lambda m, v, s, n: m.op("Resize", image(m), None,
                                        m.const([1, 1, float(n), 1], "f4")),
    "upsample_linear": lambda m, v, s, n: m.op(
        "Resize", image(m), None, m.const([1, 1, float(n), float(n)], "f4"), mode="linear"),
    "downsample": lambda m, v, s, n: m.op(
        "Resize", image(m), None, m.const([1, 1, 1 / abs(n) ** 2, abs(n) ** 2], "f4")
    ),
    "max_unpool": lambda m, v, s, n: m.op("MaxUnpool", m.feed(arange(1, 1, 2, 2)),
                                          m.feed(np.zeros((1, 1, 2, 2), "i8")), v(1, 1, n, n),
                                          kernel_shape=[2, 2]),
    # as attributes
    "depth_to_space": lambda m, v, s, n: m.op("DepthToSpace", image(m), blocksize=n),
    "space_to_depth": lambda m, v, s, n: m.op("SpaceToDepth", image(m), blocksize=n),
    "pool_kernel": lambda m, v, s, n: m.op("MaxPool", image(m), kernel_shape=[n, 1]),
    "pool_pads": lambda m, v, s, n: m.op("AveragePool", image(m), kernel_shape=[2, 2],
                                         pads=[n, 0, 0, 0]),
    "pool_strides": lambda m, v, s, n: m.op("MaxPool", image(m), kernel_shape=[2, 2],
                                            strides=[n, n]),
    "pool_ceil": lambda m, v, s, n: m.op("MaxPool", image(m), kernel_shape=[2, 2],
                                         strides=[n, n], ceil_mode=1),
    "pool_dilations": lambda m, v, s, n: m.op("MaxPool", image(m), kernel_shape=[2, 2],
                                              dilations=[n, 1]),
    "conv_strides": lambda m, v, s, n: m.op("Conv", image(m), m.const(arange(2, 4, 2, 2)),
                                            strides=[n, n]),
    "conv_pads": lambda m, v, s, n: m.op("Conv", image(m), m.const(arange(2, 4, 2, 2)),
                                         pads=[n, 0, 0, 0]),
    "conv_both": lambda m, v, s, n: m.op("Conv", image(m), m.const(arange(2, 4, 2, 2)),
                                         pads=[n, 0, 0, 0], strides=[n, 1]),
    "conv_dilations": lambda m, v, s, n: m.op("Conv", image(m), m.const(arange(2, 4, 2, 2)),
                                              dilations=[n, n]),
    "conv_group": lambda m, v, s, n: m.op("Conv", image(m), m.const(arange(2, 4, 2, 2)), group=n),
    "deconv_strides": lambda m, v, s, n: m.op("ConvTranspose", image(m),
                                              m.const(arange(4, 2, 2, 2)), strides=[n, 1]),
    "deconv_padding": lambda m, v, s, n: m.op(
        "ConvTranspose", image(m), m.const(arange(4, 2, 2, 2)), output_padding=[n, n]),
    "deconv_shape": lambda m, v, s, n: m.op(
        "ConvTranspose", image(m), m.const(arange(4, 2, 2, 2)), output_shape=[n, n]),
    "split_outputs": lambda m, v, s, n: m.op("Split", line(m), num_outputs=n, outputs=2)[0],
    "flatten": lambda m, v, s, n: m.op("Flatten", image(m), axis=n),
    "concat": lambda m, v, s, n: m.op("Concat", line(m), line(m), axis=n),
    "softmax": lambda m, v, s, n: m.op("Softmax", image(m), axis=n),
    "argmax": lambda m, v, s, n: m.op("ArgMax", image(m), axis=n),
    "eye": lambda m, v, s, n: m.op("EyeLike", m.op("Reshape", line(m), m.const([1, -1], "i8")),
                                   k=n),
    "lrn": lambda m, v, s, n: m.op("LRN", image(m), size=n),
    "groups": lambda m, v, s, n: m.op("GroupNormalization", image(m), m.const(np.ones(4, "f4")),
                                      m.const(np.ones(4, "f4")), num_groups=n),
    "roi": lambda m, v, s, n: m.op("RoiAlign", image(m), m.feed(arange(1, 4)),
                                   m.feed(np.zeros(1, "i8")), output_height=n, output_width=2,
                                   sampling_ratio=2),
    "sampling": lambda m, v, s, n: m.op("RoiAlign", image(m), m.feed(arange(1, 4)),
                                        m.feed(np.zeros(1, "i8")), sampling_ratio=n),
    "random": lambda m, v, s, n: m.op("RandomNormal", shape=[n, 2]),
    "hidden": lambda m, v, s, n: m.op("GRU", m.feed(arange(2, 1, 1)), m.const(arange(1, 3, 1)),
                                      m.const(arange(1, 3, 1)), hidden_size=n),
    "heads": lambda m, v, s, n: m.op("Attention", *[m.feed(arange(1, 2, 4))] * 3, q_num_heads=n,
                                     kv_num_heads=n),
    "window": lambda m, v, s, n: m.op("LpPool", image(m), kernel_shape=[2, 2], p=n),
}  # fmt: skip


@pytest.fixture(autouse=True)
def little_memory() -> Any:
    """What is allocated, not what is reserved, is bounded: 6 GB beyond what there is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def sized(name: str, n: int, known: bool) -> Model:
    """The model whose sizes are n: constants, or inputs."""
    m = Model(23 if name == "heads" else 18)
    make = m.const if known else m.feed
    m.keep(SIZES[name](m, lambda *v: make(np.array(v, np.int64)), lambda v: make(np.int64(v)), n))
    return m


def refused_or_small(run: Callable[[], Sequence[Array]], n: int) -> None:
    try:
        (got,) = run()
    except (Error, MemoryError) as error:
        assert "\n" not in str(error) and not isinstance(error, InternalError), error
    else:
        assert got.size < 1 << 20, (n, got.shape)


@pytest.mark.parametrize("name", SIZES)
def test_b26_b36_sizes(name: str) -> None:
    for n in HUGE:
        m = sized(name, n, known=True)
        refused_or_small(lambda m=m: m.run(opt_level=1), n)  # type: ignore[misc]
    m = sized(name, HUGE[0], known=False)
    if not any(v.type.tensor_type.elem_type == 7 for v in m.inputs):
        return  # an attribute
    try:
        engine = m.engine(opt_level=1)
    except Error as error:
        assert not isinstance(error, InternalError), error
        return
    for n in HUGE:
        feeds = sized(name, n, known=False).feeds
        refused_or_small(lambda f=feeds: engine.run(None, f), n)  # type: ignore[misc]
