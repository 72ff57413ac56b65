"""Few rows by a matrix in place, against numpy: extents, strides, and nothing read past an end."""

import numpy as np
import pytest
from contraction_check import EVERY, close, guarded

from cuvil.codegen.contraction.arith import Slot
from cuvil.codegen.contraction.harness import HostKernel, new_module
from cuvil.codegen.contraction.spec import BatchDim, ContractionSpec, KDim, RowDim
from cuvil.codegen.few_rows import FewRowsSpec, emit_few_rows, scratch_bytes, task_count

RNG = np.random.default_rng(5)


def product(a, b, facts, along_sum=False, known=True):
    """a [batch, m, k] by b [batch, k, n]; along_sum: b lies as [batch, n, k]."""
    batch, m, k = a.shape
    n = b.shape[-1]
    matrix = np.ascontiguousarray(b.swapaxes(-1, -2)) if along_sum else b
    size = (lambda x, at: x) if known else (lambda x, at: Slot(at))
    spec = FewRowsSpec(
        ContractionSpec(
            (BatchDim(size(batch, 0), m * k, k * n, m * n),), (RowDim(m, k, n),),
            (KDim(size(k, 1), 1),), size(n, 2), panel=0,
        ),
        *((1, size(k, 1)) if along_sum else (size(n, 2), 1)),
    )  # fmt: skip
    module = new_module(facts)
    emit_few_rows(module, "kernel", spec, facts)
    kernel = HostKernel(module, "kernel", facts, opt=1)
    buffers = [guarded(x) for x in (a, matrix, np.zeros((batch, m, n), np.float32))]
    dims = [batch, k, n]
    run = kernel.bind(buffers, dims, scratch_bytes(spec, facts))
    for task in reversed(range(task_count(spec, facts, dims))):
        run(task, task + 1)
    return buffers[2]


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("along_sum", [False, True])
@pytest.mark.parametrize("known", [True, False])
def test_products(facts, along_sum, known) -> None:
    more = ((1, 4, 17, 130), (2, 3, 1, 1)) if known else ()
    for batch, m, k, n in ((1, 1, 300, 331), (3, 2, 75, 19), *more):
        a = RNG.standard_normal((batch, m, k), np.float32)
        b = RNG.standard_normal((batch, k, n), np.float32)
        close(product(a, b, facts, along_sum, known), a @ b)


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("along_sum", [False, True])
def test_sums_of_nothing_are_zero(facts, along_sum) -> None:
    a, b = np.ones((1, 2, 0), np.float32), np.ones((1, 0, 21), np.float32)
    assert not product(a, b, facts, along_sum, known=False).any()
    a, b = np.ones((1, 2, 5), np.float32), np.ones((1, 5, 0), np.float32)
    assert product(a, b, facts, along_sum, known=False).size == 0


@pytest.mark.parametrize("along_sum", [False, True])
def test_long_sums_are_exact(along_sum) -> None:
    facts = EVERY[0].values[0]
    a = RNG.random((1, 1, 40_000), np.float32)
    b = RNG.random((1, 40_000, 5), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = product(a, b, facts, along_sum, known=False)
    assert (np.abs(found - exact) < 2e-6 * exact).all()


def test_wide_matrices_are_many_tasks() -> None:
    facts = EVERY[0].values[0]
    sizes = ((BatchDim(2, 0, 0, 0),), (RowDim(1, 0, 0),), (KDim(1000, 1),), 4000)
    spec = FewRowsSpec(ContractionSpec(*sizes, panel=0), 4000, 1)
    assert 8 <= task_count(spec, facts) <= 256
