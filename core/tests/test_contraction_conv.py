"""Convolutions as contractions: NHWC, input already padded, against a direct sum in numpy."""

import numpy as np
import pytest
from contraction_check import EVERY, FMA16, close, contract

from cuvil.codegen.contraction import (
    BatchDim,
    ContractionSpec,
    KDim,
    RowDim,
    Slot,
    merge_k,
    merge_rows,
    pack_panels,
)
from cuvil.codegen.contraction.schedule import make_schedule

RNG = np.random.default_rng(11)


def out_size(padded, kernel, stride, dilation):
    return (padded - dilation * (kernel - 1) - 1) // stride + 1


def conv_spec(x, weights, stride=1, dilation=1, groups=1, dynamic=False):
    """x [H, W, C] padded; weights [groups, KH, KW, C/groups, N/groups]."""
    (h, w, c), (_, kh, kw, cg, ng) = x.shape, weights.shape
    oh, ow = (out_size(s, k, stride, dilation) for s, k in ((h, kh), (w, kw)))
    n, pitch = groups * ng, w * c
    if dynamic:  # slots: OH, OW, row pitch of the input, of the output, columns of a group
        slots = [oh, ow, pitch * stride, pitch * dilation, ow * n, ng]
        oh, ow, a_row, k_row, c_row, step = (Slot(i) for i in range(6))
    else:
        slots, a_row, k_row, c_row, step = [], pitch * stride, pitch * dilation, ow * n, ng
    spec = ContractionSpec(
        (BatchDim(groups, cg, -(-ng // 32) * kh * kw * cg * 32, ng, step),),
        (RowDim(oh, a_row, c_row), RowDim(ow, stride * c, n)),
        (KDim(kh, k_row), KDim(kw, dilation * c), KDim(cg, 1)),
        ng,
    )
    return spec, slots


def direct(x, weights, stride, dilation):
    """The definition: a sum over taps, group by group."""
    groups, kh, kw, cg, _ = weights.shape
    oh = out_size(x.shape[0], kh, stride, dilation)
    ow = out_size(x.shape[1], kw, stride, dilation)
    parts = []
    for g in range(groups):
        total = 0
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dilation, i * dilation + (oh - 1) * stride + 1, stride)
                columns = slice(j * dilation, j * dilation + (ow - 1) * stride + 1, stride)
                total = total + x[rows, columns, g * cg : (g + 1) * cg] @ weights[g, i, j]
        parts.append(total)
    return np.concatenate(parts, -1)


CASES = {
    "3x3": {"x": (9, 11, 5), "w": (1, 3, 3, 5, 40)},
    "short rows share a tile": {"x": (9, 9, 4), "w": (1, 3, 3, 4, 32)},
    "one column": {"x": (20, 3, 4), "w": (1, 3, 3, 4, 8)},
    "stride 2": {"x": (17, 23, 6), "w": (1, 3, 3, 6, 33), "stride": 2},
    "dilation 2": {"x": (13, 14, 3), "w": (1, 3, 3, 3, 16), "dilation": 2},
    "1x1": {"x": (6, 31, 16), "w": (1, 1, 1, 16, 32)},
    "1x1 stride 2": {"x": (8, 8, 12), "w": (1, 1, 1, 12, 20), "stride": 2},
    "7x7 of 3 channels": {"x": (21, 37, 3), "w": (1, 7, 7, 3, 64), "stride": 2},
    "groups": {"x": (6, 9, 12), "w": (3, 3, 3, 4, 7), "groups": 3},
    "tall kernel": {"x": (9, 5, 2), "w": (1, 5, 1, 2, 10)},
}


DYNAMIC = ["3x3", "one column", "dilation 2", "1x1 stride 2", "groups"]


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("name", CASES)
def test_static_sizes(name, facts):
    check(name, facts, False)


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("name", DYNAMIC)
def test_run_time_sizes(name, facts):
    check(name, facts, True)


def check(name, facts, dynamic):
    case = dict(CASES[name])
    x, w = (RNG.standard_normal(case.pop(key), np.float32) for key in ("x", "w"))
    spec, slots = conv_spec(x, w, dynamic=dynamic, **case)
    wanted = direct(x, w, case.get("stride", 1), case.get("dilation", 1))
    packed = pack_panels(w.reshape(w.shape[0], -1, w.shape[-1]), 32)
    found = contract(spec, facts, [x, packed, np.zeros_like(wanted)], slots)
    close(found, wanted)


def test_groups_continue_the_columns_that_the_epilogue_sees():
    x, w = RNG.standard_normal((4, 4, 6), np.float32), np.zeros((2, 1, 1, 3, 5), np.float32)
    spec, _ = conv_spec(x, w, groups=2)
    bias = np.arange(10, dtype=np.float32)
    packed = pack_panels(w.reshape(2, 3, 5), 32)

    def add_bias(e, acc):
        return e.builder.fadd(acc, e.load(3, "f32", e.col))

    found = contract(spec, FMA16, [x, packed, np.zeros((4, 4, 10), np.float32), bias], (), add_bias)
    np.testing.assert_array_equal(found, np.broadcast_to(bias, (4, 4, 10)))


def test_taps_that_continue_one_another_become_one_loop():
    assert merge_k((KDim(3, 100), KDim(3, 4), KDim(4, 1))) == (KDim(3, 100), KDim(12, 1))
    assert merge_k((KDim(1, 9), KDim(1, 9), KDim(8, 1))) == (KDim(8, 1),)
    assert merge_k((KDim(3, 100), KDim(3, 8), KDim(4, 1)))[1] == KDim(3, 8)


def test_dense_rows_merge_where_both_sides_allow():
    dense = (RowDim(7, 56, 70), RowDim(7, 8, 10))
    assert merge_rows(dense) == (RowDim(49, 8, 10),)
    padded = (RowDim(7, 72, 70), RowDim(7, 8, 10))
    assert merge_rows(padded) == padded


def test_small_images_fill_the_tile_with_several_rows():
    x, w = np.zeros((9, 9, 8), np.float32), np.zeros((1, 3, 3, 8, 32), np.float32)
    assert make_schedule(conv_spec(x, w)[0], FMA16).tile == (2, 7)
