"""One artefact with code for particular extents: chosen at each call, weights stored once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import cuvil
from cuvil.aot.write import compile_to_folder
from cuvil.cli.arguments import options_of, parse_specialize
from cuvil.cli.inspect_command import tell
from cuvil.frontends.onnx import import_model
from cuvil.pipeline import compile_graph
from cuvil.plan.interpreter import run_plan
from tests import small_models

CONVOLUTION = """net (float[N, 3, 9, W] x, float[8, 3, 3, 3] w) => (float[N, 8] y, int64[2, K] at) {
  c = Conv<pads = [1, 1, 1, 1]>(x, w)  r = Relu(c)  p = GlobalAveragePool(r)
  shape = Constant<value = int64[2] {0, -1}>()  y = Reshape(p, shape)
  t = Transpose<perm = [1, 0]>(y)  s = MatMul(y, t)  at = NonZero(s) }"""


def launched(engine: cuvil.Engine, *arrays: np.ndarray) -> str:
    names = [i.name for i in engine.get_inputs()]
    _, launches = engine.profile(dict(zip(names, arrays, strict=True)))
    return " ".join(launch.kernel for launch in launches)


def test_each_size_runs_its_own_code() -> None:
    model = small_models.dense(rows="B", columns=32)
    engine = cuvil.compile(model, batch=[1, 4, 16], cache=False)
    for rows, prefix in ((1, "B1_"), (4, "B4_"), (16, "B16_"), (3, "k"), (17, "k"), (1, "B1_")):
        x = np.random.default_rng(rows).standard_normal((rows, 8), np.float32)
        expected = small_models.dense_result(model, x)
        np.testing.assert_allclose(engine(x), expected, rtol=1e-5, atol=1e-5)
        assert launched(engine, x).startswith(prefix)


def convolution() -> tuple[onnx.ModelProto, np.ndarray]:
    w = np.random.default_rng(0).standard_normal((8, 3, 3, 3), np.float32)
    model = small_models.model(CONVOLUTION)
    del model.graph.input[1]
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    return model, w


def test_two_symbols_and_extents_that_a_run_finds() -> None:
    model, _ = convolution()
    plain = cuvil.compile(model, cache=False)
    engine = cuvil.compile(model, specialize={"N": [1, 2], "W": [9]}, cache=False)
    for n, width, prefix in ((2, 9, "N2_W9_"), (1, 9, "N1_W9_"), (2, 7, "k"), (3, 9, "k")):
        x = np.random.default_rng(n).standard_normal((n, 3, 9, width), np.float32)
        for got, expected in zip(engine(x), plain(x), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        assert launched(engine, x).startswith(prefix)


def test_plans_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUVIL_VERIFY", "1")
    model, _ = convolution()
    options = options_of(specialize=["N=1,2"], cpu="x86-64")
    plan = compile_graph(import_model(model), options).plan
    assert [dict(row) for row in plan.special] == [{"N": 1}, {"N": 2}]
    engine = cuvil.compile(model, cache=False)
    for n in (1, 2, 3):
        x = np.random.default_rng(n).standard_normal((n, 3, 9, 5), np.float32)
        y, at = engine(x)
        found = run_plan(plan, {"x": x})
        np.testing.assert_allclose(found["y"], y, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found["at"], at)


def test_an_artefact_grows_by_code_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small_models.model("big (float[B, 512] x) => (float[B, 1024] y) { y = MatMul(x, w) }")
    w = np.random.default_rng(0).standard_normal((512, 1024), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    plain, special = (
        compile_to_folder(model, tmp_path / name, options_of(specialize=words, cpu="x86-64"))
        for name, words in (("plain", None), ("special", ["batch=1,4,8,16"]))
    )
    sizes = [made.files["so"].stat().st_size for made in (plain, special)]
    weights = plain.manifest["weights_bytes"]
    assert special.manifest["weights_bytes"] == weights >= w.nbytes
    assert 0 < sizes[1] - sizes[0] < weights // 8
    assert special.manifest["specialized"] == [{"B": n} for n in (1, 4, 8, 16)]
    assert "with code of its own for B = 16" in special.files["header"].read_text()
    tell(special.manifest)
    assert "code for B = 4" in capsys.readouterr().out
    engine = cuvil.load(special.folder)
    for rows in (4, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 512), np.float32)
        np.testing.assert_allclose(engine(x), x @ w, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"specialize": {"M": [1]}}, "cannot specialise 'M'; the inputs' symbolic dims are N"),
        ({"specialize": {"N": [0]}}, "expected extents"),
        ({"batch": [3], "dynamic_shapes": {"N": "2..8:2"}}, r"N = 3: it is 2..8, multiple of 2"),
        ({"batch": [9], "bounds": {"N": (1, 8)}}, r"N = 9: it is 1..8"),
        ({"batch": list(range(1, 80))}, "more than 64"),
        ({"batch": [1], "dims": {"N": 1}}, "symbolic dims are none"),
    ],
)
def test_what_cannot_be_specialised_is_said(given: Any, message: str) -> None:
    with pytest.raises(cuvil.OptionError, match=message):
        cuvil.compile(small_models.dense(), cache=False, **given)


def test_the_command_lines_words() -> None:
    assert parse_specialize(["B=1,4", "S=8"]) == {"B": (1, 4), "S": (8,)}
    with pytest.raises(cuvil.OptionError, match="--specialize B=0"):
        parse_specialize(["B=0"])
