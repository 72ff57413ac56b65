"""Tuning without a compiler: when another way replaces the usual one, and what is remembered."""

from __future__ import annotations

import itertools
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contraction_check import EVERY, close, contract
from onnx_models import model

from cuvil.codegen.contraction import ContractionSpec, KDim, RowDim, Slot, pack_panels
from cuvil.codegen.contraction.schedule import cut_of, make_schedule
from cuvil.codegen.contraction.tuning import alternatives
from cuvil.engine.cache_store import Store
from cuvil.engine.cached import CacheWarning
from cuvil.errors import OptionError
from cuvil.extents import read_dynamic_shapes
from cuvil.frontends.onnx import import_model
from cuvil.frontends.onnx.model import Promises
from cuvil.ir.build import Builder
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.options import Options
from cuvil.plan.plan import make_plan
from cuvil.plan.templates import PLAIN, Templates, question
from cuvil.tune.extents import sample_of
from cuvil.tune.measure import fastest
from cuvil.tune.records import Records
from cuvil.tune.trials import trials_of

RNG = np.random.default_rng(5)


class Clock:
    """A clock that calls move: each takes the next of its times, over and over."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def call(self, *seconds):
        times = itertools.cycle(seconds)

        def run():
            self.now += next(times)

        return run


def winner(usual, other, again=None, seconds=1.0):
    clock = Clock()
    calls = {"usual": clock.call(*usual), "other": clock.call(*other)}
    threads = {"usual": calls["usual"], "other": clock.call(*again)} if again else calls
    return fastest(calls, threads, seconds, clock)


def test_a_clear_win_in_both_comparisons_replaces_the_usual_way():
    assert winner([0.010], [0.008]) == ("other", pytest.approx(1.25))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([0.010], id="no faster"),
        pytest.param([0.0098], id="hardly faster"),
        pytest.param([0.012], id="slower"),
        pytest.param([0.008, 0.008, 0.0101], id="faster in too few rounds"),
        pytest.param([*[0.008] * 40, *[0.011] * 400], id="faster at first only"),
    ],
)
def test_all_else_leaves_it_as_it_is(other):
    assert winner([0.010], other) == ("usual", 1.0)


def test_what_is_faster_on_one_thread_only_is_not_taken():
    assert winner([0.010], [0.008], again=[0.0099]) == ("usual", 1.0)
    assert winner([0.010], [0.008], again=[0.009]) == ("other", pytest.approx(10 / 9))


def records(tmp_path: Path, **more: object) -> Records:
    return Records(Store(tmp_path / "cache"), "wide", {"cuvil": "1"}, **more)


def test_an_answer_is_known_by_question_build_version_and_cpu(tmp_path, monkeypatch):
    kept = records(tmp_path)
    kept.keep("how?", "so", 1.2)
    assert kept.find("how?", ["by cost", "so"]) == "so"
    assert kept.find("why?", ["by cost", "so"]) is None
    assert kept.find("how?", ["by cost", "another"]) is None  # no longer among the answers
    assert replace(kept, build="narrow").find("how?", ["so"]) is None
    assert replace(kept, versions={"cuvil": "2"}).find("how?", ["so"]) is None
    monkeypatch.setattr("cuvil.tune.records.cpu_identity", lambda: "another")
    assert kept.find("how?", ["so"]) is None
    assert replace(kept, anywhere=True).find("how?", ["so"]) == "so"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"question": "how?"}', '{"answer": "so"}'])
def test_a_damaged_record_is_none_and_says_so(tmp_path, text):
    kept = records(tmp_path)
    kept.keep("how?", "so", 1.2)
    (path,) = (tmp_path / "cache" / "records" / "tuned").iterdir()
    path.write_text(text)
    with pytest.warns(CacheWarning, match=path.name):
        assert kept.find("how?", ["so"]) is None
    kept.keep("how?", "so", 1.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept.find("how?", ["so"]) == "so"


def test_records_are_text_that_says_what_they_are(tmp_path):
    records(tmp_path).keep("how?", "so", 1.2345)
    (path,) = (tmp_path / "cache" / "records" / "tuned").iterdir()
    assert json.loads(path.read_text()) == {"question": "how?", "answer": "so", "gain": 1.234}


@pytest.mark.parametrize("facts", EVERY)
def test_every_cut_of_a_contraction_gives_its_sums(facts):
    m, n, k = 20, 40, 70
    spec = ContractionSpec((), (RowDim(m, k, n),), (KDim(k, 1),), n)
    a, b = RNG.standard_normal((m, k), np.float32), RNG.standard_normal((k, n), np.float32)
    choices = alternatives(spec, facts)
    assert choices[0] == cut_of(make_schedule(spec, facts))
    made = [make_schedule(replace(spec, choice=c), facts) for c in choices]
    assert made[0] == make_schedule(spec, facts) and len(set(made)) == len(made) > 1
    for choice in choices:
        buffers = [a, pack_panels(b, 32), np.full((m, n), np.nan, np.float32)]
        close(contract(replace(spec, choice=choice), facts, buffers), a @ b)


def test_any_number_of_rows_has_cuts_but_sums_of_any_length_are_left_to_costs():
    facts = EVERY[0].values[0]
    rows = ContractionSpec((), (RowDim(Slot(0), 64, 64),), (KDim(64, 1),), 64)
    made = [make_schedule(replace(rows, choice=c), facts) for c in alternatives(rows, facts)]
    assert made[0] == make_schedule(rows, facts) and len(set(made)) == len(made) > 1
    assert alternatives(replace(rows, k=(KDim(Slot(0), 1),)), facts) == []


@pytest.mark.parametrize(
    ("promise", "extent"),
    [("2..40", 21), ("8..40:8", 24), ("30..33:3", 30), ("1..", None)],
)
def test_symbols_are_timed_in_the_middle_of_their_range(promise, extent):
    promises = Promises(dynamic=read_dynamic_shapes({"S": promise}))
    source = model("g (float[S, 16] x) => (float[S, 16] y) { y = Softmax(x) }")
    plan = make_plan(import_model(source, promises=promises))
    assert sample_of(plan) == ({} if extent is None else {"S": extent})
    trials = [trial for trial, _ in trials_of(plan).values()]
    assert [t.sizes for t in trials] == ([] if extent is None else [(64 * extent,) * 2])


def convolution(taps=3):
    graph = new_graph("g", {"x": TensorType.of((1, 16, 16, 32), "f32")}, Pool())
    b = Builder(graph.block, graph.pool, "g")
    weights = b.const(np.ones((32, 32, taps, taps), np.float32))
    y = b.conv(graph.inputs[0], weights, strides=(1, 1), dilations=(1, 1), pads=(0,) * 4, groups=1,
               layout="channels_last")  # fmt: skip
    return finish_graph(graph, {"y": y}), y.owner


def test_a_convolution_can_be_planned_in_each_of_its_ways():
    graph, op = convolution()
    names = Templates().ways(op)
    assert names[0] == "winograd 4x4" and {*names} == {
        PLAIN, "winograd 2x2", "winograd 2x4", "winograd 4x2", "winograd 4x4", "winograd 4x6",
        "winograd 6x4", "winograd 6x6",
    }  # fmt: skip
    for name in names:
        plan = make_plan(graph, templates=Templates(chosen={question(op): name}))
        ((trial, launches),) = trials_of(plan).values()
        assert launches == 1
        assert ("winograd" in str(trial.kernel)) == (name != PLAIN)


def test_a_way_that_is_not_there_is_left_to_costs():
    graph, op = convolution()
    plain = Templates(chosen={question(op): "winograd 8x8"})
    assert "winograd" in str(next(iter(make_plan(graph, templates=plain).kernels.values())))


def test_what_has_one_way_has_no_choice():
    assert Templates().ways(convolution(taps=1)[1]) == []


def test_a_budget_is_seconds_or_text():
    texts = [60, "60", "60s", "1m", " 1M "]
    assert {Options(tune=text).tune for text in texts} == {60.0}  # type: ignore[arg-type]
    for wrong in ("", "soon", "-1", "1h", "nan", float("inf")):
        with pytest.raises(OptionError, match="budget such as"):
            Options(tune=wrong)  # type: ignore[arg-type]
