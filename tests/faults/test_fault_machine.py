"""Outputs, threads, idle workers, denormal numbers: rows B43, B45, B47, B48 and B52."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuvil.engine.engine import Engine
from cuvil.engine.front_door import compile_engine
from cuvil.options import Options
from cuvil_runtime import default_threads
from tests.faults.cases import Model, arange, check, f32, outputs_of


def test_b43_outputs_of_every_kind() -> None:
    """An input given back, one tensor twice, a scalar, a constant; inputs in any order."""
    m = Model()
    x, y = m.feed(arange(2, 3)), m.feed(f32([1, 2, 3]))
    table = m.const(arange(4, 3))
    total = m.op("ReduceSum", x, keepdims=0)
    twice = m.op("Add", x, y)
    m.keep(
        x, twice, m.op("Identity", twice), total, table, m.op("MatMul", x, m.op("Transpose", table))
    )
    engine = m.engine()
    ways = [engine(m.feeds[x], m.feeds[y]), engine(**{y: m.feeds[y], x: m.feeds[x]}),
            engine({y: m.feeds[y], x: m.feeds[x]})]  # fmt: skip
    for got in ways:
        wants = [arange(2, 3), arange(2, 3) + [1, 2, 3], arange(2, 3) + [1, 2, 3], 15,
                 arange(4, 3), arange(2, 3) @ arange(4, 3).T]  # fmt: skip
        for g, w in zip(got, wants, strict=True):
            check(g, w)
        got[0][:] = 9  # outputs are the caller's own
        got[4][:] = 9
    check(m.feeds[x], arange(2, 3))


def test_b43_a_weight_used_twice_is_stored_once() -> None:
    """An embedding whose table is the last layer's weight as well, by another layout or not."""
    m = Model()
    table = np.random.default_rng(0).standard_normal((512, 64)).astype(np.float32)
    shared = m.const(table)
    x = m.op("Gather", shared, m.feed(np.array([3, 5])))
    m.keep(
        m.op("Gather", shared, m.feed(np.array([1]))),
        x,
        m.op("MatMul", x, m.op("Transpose", shared)),
    )
    engine = m.engine()
    check(outputs_of(m, engine)[2], table[[3, 5]] @ table.T, 1e-4, 1e-4)
    assert engine.model.weights_bytes <= 2.1 * table.nbytes  # as it is and, perhaps, packed


def arena_model() -> Model:
    """Needs scratch memory, and gives a constant among its outputs."""
    m = Model()
    x = m.feed(arange(32, 32) / 999)
    product = m.op("MatMul", x, m.op("Transpose", x))
    m.keep(m.op("Softmax", m.op("MatMul", product, product)), m.const(arange(5)))
    return m


@pytest.mark.parametrize("form", ["fixed", "symbolic", "library"])
def test_b45_one_handle_and_many_threads(form: str) -> None:
    m = arena_model()
    m.form = form
    engine = m.engine()
    name = m.inputs[0].name
    inputs = [np.random.default_rng(k).standard_normal((32, 32)).astype("f4") for k in range(8)]
    wants = [engine.run(None, {name: x})[0] for x in inputs]

    def many(k: int) -> bool:
        for _ in range(50):
            got, constant = engine.run(None, {name: inputs[k]})
            if not np.array_equal(got, wants[k]) or not np.array_equal(constant, arange(5)):
                return False
            constant[:] = -1  # the caller's own
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(many, range(8)))


def threads_of(environment: dict[str, str], *prefix: str) -> int:
    code = "import cuvil_runtime; print(cuvil_runtime.default_threads())"
    clean = {k: v for k, v in os.environ.items() if k != "CUVIL_NUM_THREADS"}
    done = subprocess.run([*prefix, sys.executable, "-c", code], capture_output=True, text=True,
                          env={**clean, **environment}, check=True)  # fmt: skip
    assert not done.stderr
    return int(done.stdout)


def test_b47_threads_are_those_the_process_may_use() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    everything = threads_of({})
    assert 1 <= everything <= len(allowed)
    assert threads_of({}, "taskset", "-c", str(allowed[0])) == 1
    assert threads_of({"OMP_NUM_THREADS": "7"}) == everything
    assert threads_of({"CUVIL_NUM_THREADS": "3"}) == 3
    assert threads_of({"CUVIL_NUM_THREADS": "3"}, "taskset", "-c", str(allowed[0])) == 3
    assert default_threads() >= 1


def test_b47_two_threads_on_one_cpu_are_right() -> None:
    """No thread is bound to a cpu that the process may not use."""
    code = (
        "from tests.faults.test_fault_machine import arena_model\n"
        "from cuvil.engine.front_door import compile_engine\n"
        "from cuvil.options import Options\n"
        "m = arena_model()\n"
        "e = compile_engine(m.proto(), Options(), threads=4)\n"
        "print(sum(float(e.run(None, m.feeds)[0].sum()) for _ in range(20)))\n"
    )
    cpu = str(min(os.sched_getaffinity(0)))
    done = subprocess.run(["taskset", "-c", cpu, sys.executable, "-c", code], capture_output=True,
                          text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout) - 20 * 32) < 1e-2 and not done.stderr


def busy(m: Model) -> Engine:
    return compile_engine(m.proto(), Options(), threads=4)


def test_b48_idle_workers_sleep() -> None:
    """After a run, and between runs 30 ms apart: what the process uses of a cpu is little."""
    m = Model()
    x = m.feed(np.ones((256, 256), np.float32))
    m.keep(m.op("MatMul", x, m.const(np.ones((256, 256), np.float32))))
    engine = busy(m)
    outputs_of(m, engine)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.02
    started, alone = time.process_time(), 0.0
    for _ in range(10):
        begun = time.thread_time()
        outputs_of(m, engine)
        alone += time.thread_time() - begun
        time.sleep(0.03)
    assert time.process_time() - started < 5 * alone + 0.05


def test_b52_denormals_are_slow_in_no_thread_and_the_callers_state_stays() -> None:
    """Weights of 1e-39 may count as zero (the header says so); they cost no more than others."""
    engines, feeds = [], []
    rng = np.random.default_rng(52)
    for scale in (1e-39, 1e-3):
        m = Model()
        x = m.feed(np.full((64, 256), 1.0, np.float32))
        w = m.const((rng.random((256, 256)) * scale).astype(np.float32))
        y = m.op("MatMul", x, w)
        for _ in range(6):
            y = m.op("MatMul", m.op("Mul", y, m.const(np.float32(0.01))), w)
        m.keep(y)
        engines.append(busy(m))
        feeds.append(m.feeds)

    def best(k: int) -> float:
        found = []
        for _ in range(9):
            start = time.process_time()  # of all threads
            engines[k].run(None, feeds[k])
            found.append(time.process_time() - start)
        return min(found)

    assert best(0) < 3 * best(1) + 1e-3  # with denormals in hardware it is 30 times and more
    tiny = np.float32(1e-39)
    assert tiny * np.float32(0.5) != 0 and np.float32(1e-20) * np.float32(1e-19) != 0
