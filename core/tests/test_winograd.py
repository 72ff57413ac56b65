"""Winograd's convolutions: the algebra, when they are chosen, and their kernels beside a sum."""

from functools import partial

import numpy as np
import pytest
from contraction_check import FMA16, TARGETS, close, guarded

from cuvil.codegen.contraction import Slot
from cuvil.codegen.contraction.harness import HostKernel, new_module
from cuvil.codegen.winograd import Image, Result, WinogradSpec, emit_winograd, scratch_bytes
from cuvil.codegen.winograd import task_count as tasks
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.plan.plan import make_plan
from cuvil.plan.templates.cook_toom import growth, matrices
from cuvil.plan.templates.winograd import TransformedTaps
from cuvil.rewrite.winograd_cost import choose

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    ("m", "r"), [(1, 1), (2, 3), (4, 3), (2, 5), (3, 4), (3, 2), (5, 2), (6, 3), (2, 7)]
)
def test_the_matrices_filter_exactly(m, r):
    back, taps, forth = (np.array(x) for x in matrices(m, r))
    d, g = np.arange(m + r - 1) ** 2 - 5, np.array([3, -7, 2, 11, 5, 1, -4])[:r]
    found = back @ ((taps @ g) * (forth @ d))
    assert list(found) == [sum(d[i + k] * g[k] for k in range(r)) for i in range(m)]


@pytest.mark.parametrize(
    ("pixels", "taps", "channels", "n", "m"),
    [
        ((1, 56, 56), (3, 3), 64, 64, (4, 4)),
        ((1, 14, 14), (3, 3), 256, 256, (4, 4)),
        ((1, 7, 7), (3, 3), 512, 512, (2, 2)),  # 4x4 would read four times the weights
        ((1, 160, 160), (3, 3), 32, 64, (6, 6)),
        ((1, 160, 160), (3, 3), 33, 64, (4, 4)),  # sums of more channels would be too inexact
        ((1, 80, 80), (3, 3), 32, 64, (4, 4)),  # 6x6 would save an eighth: not worth its rounding
        ((1, 1, 1000), (1, 5), 64, 64, (1, 4)),
        ((1, 40, 40), (5, 5), 32, 64, (4, 4)),
        ((1, 40, 40), (7, 7), 32, 64, (2, 2)),
        ((1, 40, 40), (7, 7), 64, 64, None),
        ((1, 40, 40), (9, 9), 64, 64, None),
        ((1, 40, 40), (1, 1), 64, 64, None),
        ((1, 2, 2), (3, 3), 512, 512, None),
        ((1, 56, 56), (3, 3), 8, 64, None),
        ((symbol("B"), 28, symbol("W")), (3, 3), 128, 128, (4, 4)),
        ((1, symbol("H"), symbol("W")), (3, 3), 512, 512, (2, 2)),
        ((symbol("B"), symbol("H"), symbol("W")), (5, 5), 32, 32, (2, 2)),
        ((symbol("B"), 1, 1000), (1, 5), 64, 64, (1, 4)),
        ((1, 1, symbol("S")), (1, 3), 128, 128, None),  # may be a few samples
    ],
)
def test_the_tile_is_chosen_by_cost(pixels, taps, channels, n, m):
    assert choose(pixels, taps, channels, n) == m


def direct(x, w):
    high, wide = w.shape[2:]
    rows, columns = x.shape[1] - high + 1, x.shape[2] - wide + 1
    return sum(
        x[:, i : i + rows, j : j + columns] @ w[:, :, i, j].T
        for i in range(high)
        for j in range(wide)
    )


def build(x, w, m, facts, dynamic=False, epilogue=None, more=(), panel=32):
    """The kernel's buffers, of which the third is the result, a function that binds it to new
    scratch, as another thread's, and its number of tasks."""
    count, rows, columns, channels = x.shape
    n, taps = len(w), w.shape[2:]
    out = (rows - taps[0] + 1, columns - taps[1] + 1)
    slots = [
        count, rows, columns, rows * columns * channels, columns * channels, channels,
        *out, out[0] * out[1] * n, out[1] * n, n,
    ]  # fmt: skip
    sizes = [Slot(i) for i in range(len(slots))] if dynamic else slots
    spec = WinogradSpec(m, taps, Image(*sizes[:6]), Result(*sizes[6:]), channels, n, panel)
    module = new_module(facts)
    emit_winograd(module, "kernel", spec, facts, *([epilogue] if epilogue else []))
    kernel = HostKernel(module, "kernel", facts, opt=1)
    packed = TransformedTaps(n, channels, m, taps, panel).apply(w)
    result = np.full((count, *out, n), np.nan, "f4")
    buffers = [guarded(array) for array in (x, packed, result, *more)]
    bind = partial(kernel.bind, buffers, slots, scratch_bytes(spec, facts))
    return buffers, bind, tasks(spec, facts, slots)


def run(x, w, m, facts, *args, **options):
    buffers, bind, count = build(x, w, m, facts, *args, **options)
    call = bind()
    for task in reversed(range(count)):
        call(task, task + 1)
    return buffers[2]


TAPS = (3, 3)


@pytest.mark.parametrize(
    ("pixels", "channels", "n", "m", "count"),
    [(10, 256, 64, (2, 4), 2), (40, 64, 64, (4, 4), 8), (10, 64, 128, (2, 4), 4),
     (5, 64, 64, (2, 4), 1)],
)  # fmt: skip
@pytest.mark.parametrize("dynamic", [False, True])
def test_two_threads_get_the_same_of_the_tasks(pixels, channels, n, m, count, dynamic):
    slots = [1, pixels + 2, pixels + 2, 0, 0, 0, pixels, pixels, 0, 0, 0]
    sizes = [Slot(i) for i in range(len(slots))] if dynamic else slots
    spec = WinogradSpec(m, TAPS, Image(*sizes[:6]), Result(*sizes[6:]), channels, n)
    assert tasks(spec, FMA16, slots) == count


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_thread_transforms_tiles_once_for_all_its_tasks_of_a_launch(dynamic):
    x, w = (RNG.standard_normal(s).astype("f4") for s in ((1, 7, 8, 16), (128, 16, *TAPS)))
    (image, _, result), bind, count = build(x, w, (4, 4), FMA16, dynamic=dynamic)
    assert count == 4
    mine, another = bind(), bind()
    mine(0, 1)
    image[:] = 0  # so that it can be seen who looks at it
    mine(1, 2)
    another(2, 3)
    close(result[..., :64], direct(x, w)[..., :64])
    assert np.all(result[..., 64:96] == 0)
    mine(0, 1)  # of another launch
    assert np.all(result[..., :32] == 0)


CASES = {
    "whole tiles": ((1, 10, 18, 32), 32, TAPS, (4, 4)),
    "edges": ((1, 9, 15, 16), 64, TAPS, (4, 4)),
    "images": ((3, 7, 8, 16), 32, TAPS, (4, 4)),
    "odd channels": ((1, 8, 9, 21), 37, TAPS, (4, 4)),
    "few of all": ((1, 3, 4, 3), 5, TAPS, (4, 4)),
    "two blocks of tiles": ((1, 50, 38, 160), 40, TAPS, (4, 4)),
    "blocks of panels": ((1, 7, 8, 16), 200, TAPS, (4, 4)),
    "no images": ((0, 7, 8, 16), 32, TAPS, (4, 4)),
    "no rows": ((1, 2, 8, 16), 32, TAPS, (4, 4)),
    "one axis": ((2, 1, 23, 32), 40, (1, 5), (1, 2)),
    "the other axis": ((1, 11, 3, 16), 32, (3, 1), (4, 1)),
    "5x5": ((1, 8, 11, 16), 32, (5, 5), (2, 2)),
    "small tiles": ((1, 9, 8, 16), 32, TAPS, (2, 2)),
    "two sizes": ((1, 9, 8, 16), 32, TAPS, (2, 4)),
    "large tiles": ((1, 15, 9, 16), 33, TAPS, (6, 6)),
    "large and small": ((1, 9, 11, 16), 32, (3, 5), (2, 4)),
}
DYNAMIC = [
    "edges",
    "one axis",
    "small tiles",
    "images",
    "two blocks of tiles",
    "no images",
    "no rows",
    "large tiles",
]


def check(name, facts, dynamic):
    shape, n, taps, m = CASES[name]
    x, w = RNG.standard_normal(shape, np.float32), RNG.standard_normal((n, shape[3], *taps))
    found = run(x, w.astype("f4"), m, facts, dynamic)
    close(found, direct(x.astype("f8"), w.astype("f4").astype("f8")))


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_static_sizes(name, facts):
    check(name, facts, False)


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("name", DYNAMIC)
def test_run_time_sizes(name, facts):
    check(name, facts, True)


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("rows", [10, 9])
def test_narrow_panels(facts, rows):
    x, w = RNG.standard_normal((1, rows, 18, 32), np.float32), RNG.standard_normal((40, 32, 3, 3))
    found = run(x, w.astype("f4"), (4, 4), facts, panel=16)
    close(found, direct(x.astype("f8"), w.astype("f4").astype("f8")))


@pytest.mark.parametrize(
    ("size", "channels", "panel"), [(16, 256, 16), (9, 512, 16), (16, 128, 32), (30, 64, 32)]
)
def test_panels_are_narrow_where_all_tiles_take_one_pass_over_many_taps_then(size, channels, panel):
    graph = new_graph("g", {"x": TensorType.of((1, size, size, channels), "f32")}, Pool())
    b = Builder(graph.block, graph.pool, "g")
    taps = b.const(np.ones((channels, channels, 3, 3), np.float32))
    y = b.conv(graph.inputs[0], taps, strides=(1, 1), dilations=(1, 1), pads=(0,) * 4, groups=1,
               layout="channels_last")  # fmt: skip
    (kernel,) = make_plan(finish_graph(graph, {"y": y})).kernels.values()
    assert kernel.body.block.first_op.spec.data["panel"].data == (panel,)


@pytest.mark.parametrize("facts", TARGETS)
def test_the_epilogue_sees_image_row_column_and_channel(facts):
    x, w = RNG.standard_normal((2, 7, 9, 16), np.float32), RNG.standard_normal((40, 16, 3, 3))
    bias, residual = RNG.standard_normal(40, np.float32), RNG.standard_normal((2, 5), np.float32)

    def epilogue(e, acc):
        b = e.builder
        acc = b.fadd(acc, e.load(3, "f32", e.col))
        place = b.add(b.mul(e.rows[0], e.size(5)), e.rows[1])
        return b.fadd(acc, e.load_broadcast(4, "f32", place))

    found = run(x, w.astype("f4"), (4, 4), facts, epilogue=epilogue, more=(bias, residual))
    close(found, direct(x, w.astype("f4")) + bias + residual[:, :, None, None])


@pytest.mark.parametrize("facts", TARGETS)
def test_pixels_outside_the_image_are_not_read(facts):
    """Beyond the edge of an image come zeros, whatever its neighbour in memory holds."""
    x = np.concatenate([np.ones((1, 5, 5, 16), "f4"), np.full((1, 5, 5, 16), np.inf, "f4")])
    found = run(x, np.ones((32, 16, 3, 3), "f4"), (4, 4), facts)
    close(found[0], np.full((3, 3, 32), 144.0))


@pytest.mark.parametrize(
    ("m", "taps", "times"),
    [
        ((2, 2), TAPS, 0.56),
        ((4, 4), TAPS, 1.6),
        ((4, 6), TAPS, 3.3),
        ((6, 6), TAPS, 6.9),
        ((2, 2), (5, 5), 1.1),
        ((4, 4), (5, 5), 3.8),
        ((2, 2), (7, 7), 3.5),
        ((1, 4), (1, 5), 2.0),
    ],
)
def test_rounding_grows_as_it_is_said_to(m, taps, times):
    """Beside one running sum; and no sum of 64 channels is off by 1e-5 of the largest."""
    x = RNG.standard_normal((1, taps[0] + 23, taps[1] + 23, 64), np.float32)
    w = RNG.standard_normal((16, 64, *taps), np.float32)
    exact = direct(x.astype("f8"), w.astype("f8"))
    wrong = run(x, w, m, TARGETS[0].values[0]) - exact
    usual = root_mean_square(running_sum(x, w) - exact)
    assert growth(m, taps) == pytest.approx(times, rel=0.04)
    assert root_mean_square(wrong) == pytest.approx(times * usual, rel=0.25)
    assert np.abs(wrong).max() < 1e-5 * np.abs(exact).max()


def root_mean_square(x):
    return np.sqrt(np.mean(x**2))


def running_sum(x, w):
    """The convolution with every product added to one float32, in order."""
    high, wide = w.shape[2:]
    rows, columns = x.shape[1] - high + 1, x.shape[2] - wide + 1
    total = np.zeros((1, rows, columns, len(w)), np.float32)
    for i, j, c in np.ndindex(high, wide, x.shape[3]):
        total += x[:, i : i + rows, j : j + columns, c, None] * w[:, c, i, j]
    return total
