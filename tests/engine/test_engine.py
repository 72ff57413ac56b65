"""Engines: the ways to pass inputs, dynamic dims, errors by name, stopping, closing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cuvil
from tests import small_models

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def engine() -> cuvil.Engine:
    return cuvil.compile(small_models.dynamic(), cache=False, threads=1)


def test_inputs_by_position_keyword_and_dict(engine: cuvil.Engine) -> None:
    for total, twice in (
        engine(X, 2 * X),
        engine(y=2 * X, x=X),
        engine({"y": 2 * X, "x": X}),
        engine({"x": X}, y=2 * X),
    ):
        np.testing.assert_array_equal(total, 3 * X)
        np.testing.assert_array_equal(twice, 6 * X)


def test_run_gives_outputs_by_name(engine: cuvil.Engine) -> None:
    twice, total = engine.run(["twice", "total"], {"x": X, "y": X})
    np.testing.assert_array_equal(twice, 2 * total)
    assert len(engine.run(None, {"x": X, "y": X})) == 2
    with pytest.raises(cuvil.InputError, match="no output is called 'z'; there are: total, twice"):
        engine.run(["z"], {"x": X, "y": X})


@pytest.mark.parametrize("rows", [0, 1, 7, 100])
def test_any_extent_of_a_symbolic_dim(engine: cuvil.Engine, rows: int) -> None:
    x = np.ones((rows, 3), np.float32)
    total, _ = engine(x, x)
    np.testing.assert_array_equal(total, x + x)


def test_one_output_comes_alone() -> None:
    with cuvil.compile(small_models.add(), cache=False) as one:
        np.testing.assert_array_equal(one([1, 2, 3, 4], np.ones(4, np.float32)), [2, 3, 4, 5])
    with pytest.raises(cuvil.RuntimeFailure, match="closed"):
        one(np.ones(4, np.float32), np.ones(4, np.float32))


def test_a_matmul_with_bias_and_relu() -> None:
    made = small_models.dense()
    x = np.random.default_rng(1).standard_normal((9, 8)).astype(np.float32)
    got = cuvil.compile(made.SerializeToString(), cache=False)(x)
    np.testing.assert_allclose(got, small_models.dense_result(made, x), rtol=1e-5, atol=1e-6)


def test_what_a_model_takes_and_gives(engine: cuvil.Engine) -> None:
    assert [(i.name, i.dtype, i.dims) for i in engine.get_inputs()] == [
        ("x", "float32", ("N", 3)),
        ("y", "float32", ("N", 3)),
    ]
    assert [o.name for o in engine.get_outputs()] == ["total", "twice"]
    assert "dynamic" in repr(engine)


def test_warmup_takes_extents_by_name(engine: cuvil.Engine) -> None:
    engine.warmup(N=5)
    engine.warmup()
    assert engine.zeros(N=5)[0].shape == (5, 3)


WRONG = [
    (lambda e: e(X), cuvil.InputError, "expected 2 inputs, got 1"),
    (lambda e: e(x=X), cuvil.InputError, "missing input 'y'; the inputs are: x, y"),
    (lambda e: e(x=X, z=X), cuvil.InputError, "no input is called 'z'"),
    (lambda e: e({"x": X}, x=X), cuvil.InputError, "'x' is given twice"),
    (lambda e: e(X, y=X), cuvil.InputError, "by position or by name"),
    (lambda e: e(X, X.astype(np.float64)), cuvil.DTypeError, "'y'.*float32.*float64"),
    (lambda e: e(X, X[0]), cuvil.ShapeMismatchError, "'y'.*rank 2.*1"),
    (lambda e: e(X, X[:1]), cuvil.ShapeMismatchError, "'y'"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_wrong_inputs_are_named(
    engine: cuvil.Engine, call: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(engine)  # type: ignore[operator]


class OnlyDLPack:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **_: object) -> object:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_dlpack_and_strided_arrays(engine: cuvil.Engine) -> None:
    total, _ = engine(OnlyDLPack(X), np.asfortranarray(X))
    np.testing.assert_array_equal(total, 2 * X)


def test_many_threads_on_one_engine(engine: cuvil.Engine) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full((number + 1, 3), number, np.float32)
        for _ in range(200):
            total, twice = engine(x, x)
            if (total != 2 * number).any() or (twice != 4 * number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_time_limit_and_cancel_stop_a_run() -> None:
    loop = cuvil.compile(small_models.endless(), cache=False, threads=1)
    feed = {"x": np.ones(64, np.float32)}
    with pytest.raises(cuvil.TimeLimitError):
        loop.run(None, feed, time_limit=0.05)
    stop = threading.Timer(0.1, loop.cancel)
    stop.start()
    start = time.monotonic()
    with pytest.raises(cuvil.CancelledError):
        loop.run(None, feed, time_limit=30)
    assert time.monotonic() - start < 10


def test_a_profile_names_the_nodes(engine: cuvil.Engine) -> None:
    outputs, launches = engine.profile({"x": X, "y": X})
    np.testing.assert_array_equal(outputs[0], 2 * X)
    assert "sum" in " ".join(launch.nodes for launch in launches)
    assert all(launch.end_ns >= launch.begin_ns for launch in launches)


def test_importing_cuvil_loads_neither_numpy_nor_the_compiler() -> None:
    code = (
        "import sys, cuvil\n"
        "heavy = ('numpy', 'onnx', 'xdsl', 'llvmlite', 'importlib.metadata', 'typing')\n"
        "print([m for m in heavy if m in sys.modules], cuvil.__version__)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.startswith("[] 0.")


def test_every_public_name_is_there() -> None:
    for name in cuvil.__all__:
        assert getattr(cuvil, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cuvil.nothing  # type: ignore[attr-defined]
    assert issubclass(cuvil.DTypeError, cuvil.Error)


def test_ahead_of_time_and_back(tmp_path: Path) -> None:
    made = small_models.dense()
    x = np.ones((2, 8), np.float32)
    compiler = cuvil.Compiler.load(small_models.saved(made, tmp_path / "net.onnx"))
    artefact = compiler.optimize(opt_level="O1").compile(output_path=tmp_path / "out")
    assert artefact.library is not None
    for place in (tmp_path / "out", artefact.library):
        got = cuvil.load(place, threads=1)(x)
        np.testing.assert_allclose(got, small_models.dense_result(made, x), rtol=1e-5)
    with pytest.raises(cuvil.ArtefactError, match=r"no \.so or \.o"):
        cuvil.load(tmp_path)


def test_the_weights_of_an_artefact_may_come_from_a_reader(tmp_path: Path) -> None:
    made = small_models.dense(rows=2)
    compiler = cuvil.Compiler.load(made)
    artefact = compiler.compile(output_path=tmp_path / "libdense.so", weights="external")
    data = artefact.files["weights"].read_bytes()
    artefact.files["weights"].unlink()
    engine = cuvil.load(artefact.library, weights_reader=lambda at, n: data[at : at + n])
    x = np.ones((2, 8), np.float32)
    np.testing.assert_allclose(engine(x), small_models.dense_result(made, x), rtol=1e-5)
