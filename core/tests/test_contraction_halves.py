"""Products of matrices that are stored as float16: sums of exact products, in float32."""

from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import pytest
from contraction_check import BY_LANE, IN_ORDER, TARGETS, close, contract

from cuvil.codegen.contraction import ContractionSpec, KDim, RowDim, Slot, pack_panels
from cuvil.codegen.contraction.schedule import make_schedule

RNG = np.random.default_rng(9)
SIZES = [(1, 40, 33), (29, 50, 65)]
HAS = llvm.get_host_cpu_features()
FACTS = [
    pytest.param(
        replace(p.values[0], features="+avx2,+fma,+f16c", half=True), id=p.id,
        marks=pytest.mark.skipif(not (HAS.get("avx2") and HAS.get("f16c")), reason="no F16C"),
    )
    for p in (TARGETS[0], IN_ORDER, BY_LANE)
]  # fmt: skip


def product(m, n, k, rows, **more):
    return ContractionSpec(
        (), (RowDim(m, k, n),), (KDim(k, 1),), n, halves=True, half_rows=rows, **more
    )


def operands(m, n, k, rows):
    a, b = (RNG.standard_normal(s, np.float32).astype(np.float16) for s in ((m, k), (k, n)))
    a = a if rows else a.astype(np.float32)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    return [a, pack_panels(b, 32), np.full((m, n), np.nan, np.float32)], wanted


@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize("rows", [False, True])
def test_known_sizes(facts, rows):
    for m, n, k in SIZES:
        buffers, wanted = operands(m, n, k, rows)
        close(contract(product(m, n, k, rows), facts, buffers), wanted)


@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize("rows", [False, True])
def test_sizes_of_the_run(facts, rows):
    spec = ContractionSpec(
        (), (RowDim(Slot(0), Slot(2), Slot(1)),), (KDim(Slot(2), 1),), Slot(1), halves=True,
        half_rows=rows,
    )  # fmt: skip
    for m, n, k in SIZES:
        buffers, wanted = operands(m, n, k, rows)
        close(contract(spec, facts, buffers, [m, n, k]), wanted)


@pytest.mark.parametrize("facts", FACTS)
def test_rows_that_do_not_lie_together(facts):
    m, n, k = 13, 40, 21
    buffers, _ = operands(m, n, k, True)
    a = RNG.standard_normal((k, m), np.float32).astype(np.float16)
    spec = ContractionSpec(
        (), (RowDim(m, 1, n),), (KDim(k, m),), n, halves=True, half_rows=True
    )  # fmt: skip
    (_, panels, c) = buffers
    b = panels.reshape(-1, k, 32).swapaxes(0, 1).reshape(k, -1)[:, :n]
    close(contract(spec, facts, [a, panels, c]), a.astype(np.float32).T @ b.astype(np.float32))


def test_what_many_tiles_read_is_widened_once():
    by_lane = BY_LANE.values[0]
    many, one = (make_schedule(product(m, 40, 64, True), by_lane) for m in (64, 1))
    assert many.widened and many.wide_steps == 64
    assert one.wide_steps == 0
