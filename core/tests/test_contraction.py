"""Matrix products through the contraction generator, against numpy."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from contraction_check import BASE, EVERY, FMA8, FMA16, GROUPED, TARGETS, close, contract
from llvmlite import ir

from cuvil.codegen.contraction import (
    Arith,
    BatchDim,
    ContractionSpec,
    KDim,
    RowDim,
    Slot,
    emit_contraction,
    pack_panels,
    task_count,
)
from cuvil.codegen.contraction.cut import make_cut
from cuvil.codegen.contraction.harness import HostKernel, new_module
from cuvil.codegen.contraction.schedule import make_schedule, scratch_bytes
from cuvil.codegen.llvm_util import F32, I32, KERNEL_TYPE, splat, store

RNG = np.random.default_rng(7)


def product(m, n, k, panel=32, **more):
    """The spec of C[m, n] = A[m, k] @ B[k, n], all dense."""
    return ContractionSpec((), (RowDim(m, k, n),), (KDim(k, 1),), n, panel, **more)


def operands(m, n, k, panel=32):
    a, b = (RNG.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    return a, b, [a, pack_panels(b, panel), np.full((m, n), np.nan, np.float32)]


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 40, 33), (3, 32, 5), (14, 31, 64), (15, 100, 7), (29, 8, 65), (64, 64, 1), (2, 1, 19)],
)
def test_product_of_static_sizes(facts, m, n, k):
    a, b, buffers = operands(m, n, k)
    close(contract(product(m, n, k), facts, buffers), a @ b)


@pytest.mark.parametrize("facts", EVERY)
def test_all_rows_pass_before_the_next_panel_where_b_outgrows_the_cache(facts):
    facts, spec = replace(facts, l2_bytes=512 * 1024), product(64, 400, 1000)
    cut = make_cut(spec, make_schedule(spec, facts), facts, Arith(None, ()))
    assert cut.rows_first == 1 and cut.row_blocks > 1
    a, b, buffers = operands(64, 400, 1000)
    close(contract(spec, facts, buffers), a @ b)
    rows = ContractionSpec((), (RowDim(Slot(0), 1000, 400),), (KDim(1000, 1),), 400, 32)
    buffers[2][:] = np.nan
    close(contract(rows, facts, buffers, (64,)), a @ b)


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("panel", [4, 8, 16, 64])
def test_any_panel_width(facts, panel):
    a, b, buffers = operands(9, 37, 20, panel)
    close(contract(product(9, 37, 20, panel), facts, buffers), a @ b)


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (13, 70, 37), (45, 32, 64), (6, 31, 2)])
def test_one_kernel_for_all_run_time_sizes(facts, sizes):
    m, n, k = sizes
    a, b, buffers = operands(m, n, k)
    close(contract(product(Slot(0), Slot(1), Slot(2)), facts, buffers, sizes), a @ b)


@pytest.mark.parametrize("facts", GROUPED)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 40, 34), (15, 100, 64), (29, 8, 600), (2, 31, 2)])
def test_pairs_of_bfloat16_sum_in_float32(facts, m, n, k):
    a, b, _ = operands(m, n, k)
    a, b = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    spec = ContractionSpec((), (RowDim(m, k // 2, n),), (KDim(k // 2, 1),), n, dtype="bf16x2")
    buffers = [a.view("i4"), pack_panels(b, 32, 2).view("i4"), np.full((m, n), np.nan, "f4")]
    close(contract(spec, facts, buffers), a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize("facts", GROUPED)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 40, 36), (15, 100, 64), (29, 8, 600), (2, 31, 4)])
def test_groups_of_bytes_sum_exactly(facts, m, n, k):
    a = RNG.integers(0, 256, (m, k), np.uint8)
    b = RNG.integers(-128, 128, (k, n)).astype(np.int8)
    a[0], b[:, 0] = 255, -128  # sums of two such products do not fit into 16 bits
    spec = ContractionSpec((), (RowDim(m, k // 4, n),), (KDim(k // 4, 1),), n, dtype="u8s8x4")
    buffers = [a.view("i4"), pack_panels(b, 32, 4).view("i4"), np.full((m, n), -1, "i4")]
    found = contract(spec, facts, buffers)
    np.testing.assert_array_equal(found, a.astype("i4") @ b.astype("i4"))


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("sizes", [(0, 5, 5), (5, 0, 5), (5, 5, 0), (0, 0, 0)])
def test_empty_extents(facts, sizes):
    m, n, k = sizes
    a, b, buffers = operands(m, n, k)
    close(contract(product(m, n, k), facts, buffers), a @ b)
    close(contract(product(Slot(0), Slot(1), Slot(2)), facts, buffers, sizes), a @ b)


@pytest.mark.parametrize("k", [300, Slot(0)])
def test_blocks_of_k_keep_partial_sums(k):
    small = replace(BASE, l2_bytes=16 * 1024)
    spec = product(37, 70, k)
    assert make_schedule(spec, small).k_block
    a, b, buffers = operands(37, 70, 300)
    close(contract(spec, small, buffers, [300]), a @ b)


@pytest.mark.parametrize("stride", [1024, Slot(0)])
def test_rows_that_share_cache_sets_are_copied(stride):
    one_way = replace(BASE, l1_bytes=4096, l1_ways=1)
    spec = ContractionSpec((), (RowDim(10, stride, 40),), (KDim(50, 1),), 40)
    assert make_schedule(spec, one_way).pack == ("always" if stride == 1024 else "aliased")
    for pitch in (1024, 1000) if stride != 1024 else (1024,):
        a, b, buffers = operands(10, 40, pitch)
        buffers[1] = pack_panels(b[:50], 32)
        close(contract(spec, one_way, buffers, [pitch]), a[:, :50] @ b[:50])


@pytest.mark.parametrize("facts", EVERY)
def test_batches_and_a_shared_b(facts):
    batch = (BatchDim(Slot(0), 7 * 20, 0, 7 * 33), BatchDim(2, 4 * 7 * 20, 20 * 64, 4 * 7 * 33))
    spec = ContractionSpec(batch, (RowDim(7, 20, 33),), (KDim(20, 1),), 33)
    a = RNG.standard_normal((2, 4, 7, 20), np.float32)
    b = RNG.standard_normal((2, 20, 33), np.float32)
    c = np.zeros((2, 4, 7, 33), np.float32)
    found = contract(spec, facts, [a, pack_panels(b, 32), c], [4])
    close(found, np.einsum("ghmk,gkn->ghmn", a, b))


@pytest.mark.parametrize("facts", EVERY)
def test_transposed_a(facts):
    spec = ContractionSpec((), (RowDim(17, 1, 20),), (KDim(9, 17),), 20)
    a, b = RNG.standard_normal((9, 17), np.float32), RNG.standard_normal((9, 20), np.float32)
    found = contract(spec, facts, [a, pack_panels(b, 32), np.zeros((17, 20), np.float32)])
    close(found, a.T @ b)


@pytest.mark.parametrize("facts", TARGETS)
def test_bias_residual_and_activation_in_the_epilogue(facts):
    def epilogue(e, acc):
        b, zero = e.builder, ir.Constant(acc.type, [0.0] * e.lanes)
        total = b.fadd(acc, e.load(3, "f32", e.col))
        total = b.fadd(total, e.load(4, "f32", e.c_offset))
        scaled = b.fmul(total, e.load_broadcast(5, "f32", e.rows[0]))
        return b.select(b.fcmp_ordered(">", scaled, zero), scaled, zero)

    a, b, buffers = operands(17, 45, 12)
    bias, scale = RNG.standard_normal(45, np.float32), RNG.standard_normal((17, 1), np.float32)
    residual = RNG.standard_normal((17, 45), np.float32)
    found = contract(product(17, 45, 12), facts, [*buffers, bias, residual, scale], (), epilogue)
    close(found, np.maximum((a @ b + bias + residual) * scale, 0))


@pytest.mark.parametrize("facts", TARGETS)
def test_accumulate_adds_to_c(facts):
    a, b, buffers = operands(5, 35, 6)
    buffers[2] = RNG.standard_normal((5, 35), np.float32)
    found = contract(product(5, 35, 6, accumulate=True), facts, buffers)
    close(found, buffers[2] + a @ b)


@pytest.mark.parametrize("facts", TARGETS)
def test_the_epilogue_decides_the_type_of_c(facts):
    def to_int(e, acc):
        return e.builder.fptosi(acc, ir.VectorType(I32, e.lanes))

    a, b, buffers = operands(5, 35, 6)
    buffers[2] = np.zeros((5, 35), np.int32)
    found = contract(product(5, 35, 6), facts, buffers, (), to_int)
    np.testing.assert_allclose(found, np.trunc(a @ b), atol=1)


@pytest.mark.parametrize("facts", TARGETS)
def test_an_epilogue_may_store_by_itself(facts):
    def two_results(e, acc):
        e.store(2, acc, e.c_offset)
        e.store(3, e.builder.fneg(acc), e.c_offset)

    a, b, buffers = operands(5, 35, 6)
    buffers.append(np.zeros((5, 35), np.float32))
    spec = product(5, 35, 6)
    module = new_module(facts)
    emit_contraction(module, "kernel", spec, facts, two_results)
    run = HostKernel(module, "kernel", facts).bind(buffers, (), scratch_bytes(spec, facts))
    run(0, task_count(spec, facts))
    close(buffers[2], a @ b)
    close(buffers[3], -(a @ b))


def test_contractions_of_a_module_share_micro_kernels():
    module = new_module(FMA16)
    emit_contraction(module, "one", product(128, 768, 768), FMA16)
    shared = {name for name in module.globals if name.startswith("tile.")}
    emit_contraction(module, "two", product(128, 768, 512), FMA16)
    assert {name for name in module.globals if name.startswith("tile.")} == shared


@pytest.mark.parametrize(("k", "apart"), [(48, False), (400, True)])
def test_short_sums_are_finished_while_they_are_in_registers(k, apart):
    module = new_module(FMA16)
    emit_contraction(module, "one", product(40, 64, k), FMA16)
    assert any(name.startswith("one.epilogue") for name in module.globals) == apart


@pytest.mark.parametrize("sizes", [(1, 32, 8), (128, 768, 768), (1000, 31, 64), (0, 9, 9)])
def test_the_task_count_is_the_same_number_in_python_and_in_code(sizes):
    spec = product(Slot(0), Slot(1), Slot(2))
    module = new_module(BASE)
    function = ir.Function(module, KERNEL_TYPE, "count")
    b = ir.IRBuilder(function.append_basic_block())
    count = task_count.emit(b, function.args[1], spec, BASE)
    b.ret(b.trunc(count, I32))
    kernel = HostKernel(module, "count", BASE)
    dims = np.array(sizes, np.int64)
    assert kernel.function(None, dims.ctypes.data, 0, 0, None) == task_count(spec, BASE, sizes)


@pytest.mark.parametrize("facts", [BASE, FMA8, FMA16])
def test_tasks_are_many_for_large_work_and_one_for_small(facts):
    assert task_count(product(4, 32, 32), facts) == 1
    assert 16 <= task_count(product(512, 768, 768), facts) <= 256
    assert task_count(product(1, 32000, 768), facts) >= 16


def test_packing_pads_and_comes_back():
    b = RNG.standard_normal((2, 5, 37), np.float32)
    packed = pack_panels(b, 16)
    assert packed.shape == (2, 3, 5, 16)
    assert not packed[:, 2, :, 5:].any()
    columns = np.moveaxis(packed, 1, 2).reshape(2, 5, 48)[..., :37]
    np.testing.assert_array_equal(columns, b)


def test_arithmetic_never_divides_by_zero():
    at = Arith(None, [0])
    assert at.div(5, at.size(Slot(0))) == at.mod(5, 0) == at.ceil_div(5, 0) == 0


def test_splat_fills_every_lane():
    module = new_module(BASE)
    function = ir.Function(module, KERNEL_TYPE, "fill")
    b = ir.IRBuilder(function.append_basic_block())
    store(b, splat(b, ir.Constant(F32, 2.5), 4), function.args[4], ir.Constant(ir.IntType(64), 0))
    b.ret(ir.Constant(I32, 0))
    kernel, out = HostKernel(module, "fill", BASE), np.zeros(4, np.float32)
    kernel.function(None, None, 0, 0, out.ctypes.data)
    assert (out == 2.5).all()


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("k", [5000, 20000])
def test_long_sums_are_made_of_short_ones(facts, k):
    """One chain of roundings would be off by some 5e-6 at 20000 steps."""
    a, b = RNG.random((8, k), np.float32), RNG.random((k, 32), np.float32)
    buffers = [a, pack_panels(b, 32), np.full((8, 32), np.nan, np.float32)]
    found = contract(product(8, 32, k), facts, buffers)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(found / exact - 1).max() < 1.5e-6


@pytest.mark.parametrize("facts", EVERY)
@pytest.mark.parametrize("m", [1, 3, 13])
def test_equal_columns_have_equal_sums(facts, m):
    a, b, _ = operands(m, 40, 700)
    b[:] = b[:, :1]
    found = contract(product(m, 40, 700), facts, [a, pack_panels(b, 32), np.empty((m, 40), "f4")])
    np.testing.assert_array_equal(found, np.broadcast_to(found[:, :1], found.shape))
