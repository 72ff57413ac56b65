"""Depthwise convolutions, channels last, against a direct sum in numpy."""

import numpy as np
import pytest
from contraction_check import FMA16, TARGETS, close, guarded
from llvmlite import ir

from cuvil.codegen.contraction import Slot
from cuvil.codegen.contraction.harness import HostKernel, new_module
from cuvil.codegen.depthwise import DepthwiseBatch, DepthwiseSpec, emit_depthwise, task_count

RNG = np.random.default_rng(5)


def sizes_out(x, w, stride, dilation):
    return [(x.shape[i + 1] - dilation * (w.shape[i] - 1) - 1) // stride + 1 for i in (0, 1)]


def direct(x, w, stride, dilation):
    oh, ow = sizes_out(x, w, stride, dilation)
    total = np.zeros((x.shape[0], oh, ow, x.shape[3]), np.float32)
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            rows = slice(i * dilation, i * dilation + (oh - 1) * stride + 1, stride)
            columns = slice(j * dilation, j * dilation + (ow - 1) * stride + 1, stride)
            total += x[:, rows, columns] * w[i, j]
    return total


def run(x, w, stride, dilation, facts, dynamic=False, epilogue=None, more=()):
    n, h, width, c = x.shape
    oh, ow = sizes_out(x, w, stride, dilation)
    slots = [n, oh, ow, c, width * c, ow * c, h * width * c, oh * ow * c]
    sizes = [Slot(i) for i in range(8)] if dynamic else slots
    spec = DepthwiseSpec(
        (DepthwiseBatch(sizes[0], sizes[6], sizes[7]),),
        (sizes[1], sizes[2]),
        sizes[3],
        w.shape[:2],
        sizes[4],
        sizes[3],
        sizes[5],
        sizes[3],
        (stride, stride),
        (dilation, dilation),
    )
    module = new_module(facts)
    emit_depthwise(module, "kernel", spec, facts, *([epilogue] if epilogue else []))
    kernel = HostKernel(module, "kernel", facts, opt=1)
    buffers = [guarded(array) for array in (x, w, np.full((n, oh, ow, c), np.nan, "f4"), *more)]
    call = kernel.bind(buffers, slots)
    for task in reversed(range(task_count(spec, facts, slots))):
        call(task, task + 1)
    return buffers[2]


CASES = {
    "3x3": ((1, 9, 13, 32), (3, 3, 32), 1, 1),
    "channel tail": ((2, 6, 7, 21), (3, 3, 21), 1, 1),
    "few channels": ((1, 5, 30, 3), (3, 3, 3), 1, 1),
    "stride 2": ((1, 11, 19, 16), (3, 3, 16), 2, 1),
    "dilation 2": ((1, 11, 19, 17), (3, 3, 17), 1, 2),
    "5x5": ((1, 8, 12, 24), (5, 5, 24), 1, 1),
    "7x7 in a loop": ((1, 9, 17, 16), (7, 7, 16), 2, 1),
    "1x3": ((1, 4, 9, 8), (1, 3, 8), 1, 1),
    "no rows": ((1, 2, 9, 8), (3, 3, 8), 1, 1),
    "no batch": ((0, 5, 9, 8), (3, 3, 8), 1, 1),
}


DYNAMIC = ["3x3", "channel tail", "stride 2", "no rows", "no batch"]


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_static_sizes(name, facts):
    check(name, facts, False)


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("name", DYNAMIC)
def test_run_time_sizes(name, facts):
    check(name, facts, True)


def check(name, facts, dynamic):
    x_shape, w_shape, stride, dilation = CASES[name]
    x, w = RNG.standard_normal(x_shape, np.float32), RNG.standard_normal(w_shape, np.float32)
    found = run(x, w, stride, dilation, facts, dynamic)
    close(found, direct(x, w, stride, dilation))


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("repeats", [1, 12], ids=["unrolled", "looped"])
def test_short_and_long_epilogues(repeats, facts):
    x, w = RNG.standard_normal((1, 6, 9, 20), np.float32), np.ones((3, 3, 20), np.float32)
    bias, residual = RNG.standard_normal(20, np.float32), np.ones((4, 7, 20), np.float32)

    def epilogue(e, acc):
        for _ in range(repeats):
            acc = e.builder.fadd(acc, e.load(3, "f32", e.col))
        return e.builder.fadd(acc, e.load(4, "f32", e.c_offset))

    found = run(x, w, 1, 1, facts, epilogue=epilogue, more=(bias, residual))
    close(found, direct(x, w, 1, 1) + repeats * bias + 1)


def test_the_epilogue_sees_row_column_and_channel():
    def index(e, acc):
        b = e.builder
        total = b.add(b.mul(e.rows[0], ir.Constant(e.col.type, 100)), e.rows[1])
        e.store(2, e.load_broadcast(3, "f32", total), e.c_offset)

    x, w = np.zeros((1, 5, 6, 4), np.float32), np.zeros((3, 3, 4), np.float32)
    table = np.arange(204, dtype=np.float32)
    found = run(x, w, 1, 1, FMA16, epilogue=index, more=(table,))
    wanted = np.arange(3)[:, None] * 100 + np.arange(4)
    np.testing.assert_array_equal(found[0], np.broadcast_to(wanted[..., None], (3, 4, 4)))
