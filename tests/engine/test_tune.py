"""Tuning on this machine: what it measures it keeps, results stay right, and it has its limits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import cuvil
from cuvil.aot.write import compile_to_folder
from cuvil.extents import read_dynamic_shapes
from cuvil.options import Options
from cuvil.tune import Tuner
from cuvil.tune import tuner as tuner_module

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tuner_module, "MEASURED_S", 0.02)
    return tmp_path / "cache"


def network() -> bytes:
    """A convolution that has several ways, and a product with several cuts."""
    rng = np.random.default_rng(3)
    taps = rng.standard_normal((16, 16, 3, 3)).astype(np.float32)
    matrix = rng.standard_normal((16, 40)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "taps"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "matrix"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 40])],
        [numpy_helper.from_array(taps, "taps"), numpy_helper.from_array(matrix, "matrix")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    return model.SerializeToString()


def attention() -> bytes:
    """A product of any number of rows, which then attend to one another."""
    matrix = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32) / 8
    nodes = [
        helper.make_node("MatMul", ["x", "matrix"], ["q"]),
        helper.make_node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "k"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"], axis=-1),
        helper.make_node("MatMul", ["b", "q"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "s", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, "s", 64])],
        [numpy_helper.from_array(matrix, "matrix")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return model.SerializeToString()


def records(root: Path) -> list[Path]:
    folder = root / "records" / "tuned"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_what_was_measured_is_kept_and_the_results_are_right(root: Path) -> None:
    source, x = network(), RNG.standard_normal((1, 16, 8, 8)).astype(np.float32)
    stages: list[str] = []
    engine = cuvil.compile(source, tune="100m", progress=stages.append)
    np.testing.assert_allclose(engine(x), cuvil.compile(source)(x), rtol=1e-4, atol=1e-4)
    assert "tune 1/1" in stages
    made = {path: path.stat().st_mtime_ns for path in records(root)}
    assert made
    cuvil.compile(source, tune="100m", cache=False)
    assert made == {path: path.stat().st_mtime_ns for path in records(root)}


def test_the_second_compile_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compile_to_folder(network(), tmp_path / "a", Options(tune=6000))
    assert re.match(r"tuned: \d+ choices", first.tuned) and "known" not in first.tuned

    def measured(*arguments: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(tuner_module, "load_trials", measured)
    second = compile_to_folder(network(), tmp_path / "b", Options(tune=6000))
    assert re.search(r"(\d+) choices.* \1 known before", second.tuned)
    assert first.library and second.library
    assert first.library.read_bytes() == second.library.read_bytes()


def test_answers_of_records_reach_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner_module, "fastest", lambda calls, *more: (list(calls)[-1], 2))
    monkeypatch.setattr(tuner_module, "gain_of", lambda *arguments: 1.0)
    x = RNG.standard_normal((1, 16, 8, 8)).astype(np.float32)
    source = network()
    usual = compile_to_folder(source, tmp_path / "a", Options())
    tuned = compile_to_folder(source, tmp_path / "b", Options(tune=6000))
    assert usual.library and tuned.library
    assert "better than by cost (up to 2.00x)" in tuned.tuned
    assert usual.library.read_bytes() != tuned.library.read_bytes()
    found, expected = cuvil.load(tuned.library)(x), cuvil.load(usual.library)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_nothing_is_used_where_the_whole_model_is_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner_module, "fastest", lambda calls, *more: (list(calls)[-1], 2))
    monkeypatch.setattr(tuner_module, "gain_of", lambda *arguments: 0.99)
    usual = compile_to_folder(network(), tmp_path / "a", Options())
    for folder in ("b", "c"):  # measured, then known
        tuned = compile_to_folder(network(), tmp_path / folder, Options(tune=6000))
        assert "none of them used" in tuned.tuned
        assert usual.library and tuned.library
        assert usual.library.read_bytes() == tuned.library.read_bytes()


def test_the_whole_model_is_timed_on_each_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner_module, "fastest", lambda calls, *more: (list(calls)[-1], 2))
    monkeypatch.setattr(tuner_module, "WHOLE_S", 0.02)
    made = compile_to_folder(network(), tmp_path / "a", Options(tune=6000))
    (kept,) = [p for p in records(tmp_path / "cache") if '"model ' in p.read_text()]
    assert ('"tuned"' in kept.read_text()) == ("none of them used" not in made.tuned)


def test_extents_in_a_range_are_tuned_at_its_middle_and_right_at_all(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner_module, "fastest", lambda calls, *more: (list(calls)[-1], 2))
    monkeypatch.setattr(tuner_module, "WHOLE_S", 0.02)
    whole = tuner_module.gain_of
    monkeypatch.setattr(tuner_module, "gain_of", lambda *given: whole(*given) and 1.0)
    options = Options(tune=6000, dynamic=read_dynamic_shapes({"s": (2, 40)}))
    made = compile_to_folder(attention(), tmp_path / "a", options)
    usual = compile_to_folder(attention(), tmp_path / "b", replace(options, tune=0))
    assert "2 better than by cost" in made.tuned  # a product and attention
    assert sum("s = 21" in p.read_text() for p in records(root)) == 2
    assert made.library and usual.library
    for rows in (2, 21, 40):
        x = RNG.standard_normal((1, rows, 64)).astype(np.float32)
        found, expected = cuvil.load(made.library)(x), cuvil.load(usual.library)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_without_time_costs_decide_and_nothing_is_kept(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tuner, "_spent", lambda self: True)
    made = compile_to_folder(network(), tmp_path / "a", Options(tune=1))
    usual = compile_to_folder(network(), tmp_path / "b", Options())
    assert "left to costs" in made.tuned and not records(root)
    assert made.library and usual.library
    assert made.library.read_bytes() == usual.library.read_bytes()


def test_another_machine_is_refused_unless_something_is_known_of_it(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = network()
    compile_to_folder(source, tmp_path / "here", Options(tune=6000))
    monkeypatch.setattr("cuvil.pipeline.runnable", lambda *arguments: [])  # as if it were another
    monkeypatch.setattr("cuvil.tune.records.cpu_identity", lambda: "another")
    variant = cuvil.compile(source).model.variant
    options = Options(tune=60, variant=variant)
    made = compile_to_folder(source, tmp_path / "there", options)
    assert "known before" in made.tuned
    for path in records(root):
        path.unlink()
    with pytest.raises(
        cuvil.errors.OptionError, match=r"tune measures on this machine, .*CACHE_DIR"
    ):
        compile_to_folder(source, tmp_path / "nowhere", options)


def test_a_tuner_is_what_the_pipeline_takes() -> None:
    assert Tuner(1.0).summary() == "tuned: 0 choices"
