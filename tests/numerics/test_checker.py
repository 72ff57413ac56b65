"""The measure itself: wrong results are seen, with their size and place."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tools.numerics.builds import builds
from tools.numerics.checker import LANES, Checker, Rules
from tools.numerics.page import faults, line, tables
from tools.numerics.samples import Sample, extended, ulp_errors
from tools.numerics.speed import compare
from tools.numerics.store import Record, is_current, load, save
from tools.numerics.sweep import Outcome, different_bits, patterns, sweep

INF, NAN = math.inf, math.nan


@pytest.fixture(scope="module")
def check():
    return Checker(builds()[-1].facts, scaled=True)


def found(check, x, value, exact, rules=Rules()):  # noqa: B008
    arrays = [np.repeat(np.array([n], t), LANES) for n, t in ((x, "f4"), (value, "f4"))]
    return check(*arrays, np.repeat(float(exact), LANES), rules)


@pytest.mark.parametrize(
    ("value", "exact", "ulps"),
    [
        (1.0, 1.0, 0),
        (1 + 2.0**-23, 1.0, 1),
        (1 - 2.0**-24, 1.0, 0.5),
        (3 * 2.0**-149, 2.0**-149, 2),
        (0.0, 2.0**-130, 2.0**19),
        (INF, INF, 0),
        (INF, 2.0**128, 0),
        (INF, 2.0**127 * 1.9, 0.1 * 2.0**23),
        (3.4028235e38, INF, 1),
        (NAN, NAN, 0),
    ],
)
def test_units_in_the_last_place(check, value, exact, ulps):
    assert found(check, 0, value, exact).ulps == pytest.approx(ulps, rel=1e-6)
    by_numpy = ulp_errors(np.float32([value]), np.array([exact]))
    assert by_numpy[0] == pytest.approx(ulps, rel=1e-6)


@pytest.mark.parametrize(
    ("value", "exact"),
    [(NAN, 1.0), (1.0, NAN), (0.0, -0.0), (-0.0, 0.0), (1.0000001, 1.0), (-1e-45, 0.0)],
)
def test_faults(check, value, exact):
    assert found(check, 0, value, exact, Rules(low=0.0, high=1.0)).faults == LANES
    assert found(check, 0, exact, exact, Rules(low=-0.0, high=1.0)).faults == 0


def test_slack_and_scale(check):
    eps = 2.0**-23
    assert found(check, 8.0, 3 * eps, 0.0).scaled == 3 / 8
    assert found(check, 8.0, 0.25 + 9 * eps, 0.25, Rules(slack=1.0)).ulps == 4  # eps / 4 each
    assert found(check, 9.0, 1.0, 0.0, Rules(far=8.0)).ulps == 0


def test_a_sweep_sees_every_pattern_once():
    step = 65521
    seen = np.concatenate(list(patterns(step))).view(np.uint32).astype(np.int64)
    assert (np.diff(seen) == step).all()
    assert seen[0] == 0
    assert seen[-1] + (LANES + 1) * step > 1 << 32  # whole vectors: some may be left at the end


def test_a_sweep_finds_the_operand_of_the_largest_error():
    (*_, outcome) = sweep("sigmoid", builds()[-1:], 65535, tails=1)
    x = np.float32([outcome.ulps_at])
    exact = extended("sigmoid", x).astype(np.float64)
    with np.errstate(all="ignore"):
        every = np.concatenate(list(patterns(65535)))
    assert x[0] in every
    assert 0.5 < outcome.ulps < 2.5
    assert exact[0] == pytest.approx(1 / (1 + math.exp(-float(x[0]))))


def outcome(build="plain", **more):
    return Outcome(build, "1234", **more)


def test_what_breaks_a_bound_is_named():
    good = Record("exp", 1, [outcome(ulps=1.4)])
    bad = Record("exp", 1, [outcome(ulps=1.6, ulps_at=2.0), outcome("wide", faults=1, tails=3)])
    sample = Sample("exp", "f16", "wide", 65536, 1.2, 1.0, 5, faults=2)
    assert faults([good], []) == []
    assert [text.split(":")[0] for text in faults([bad], [sample])] == [
        "exp, f32, plain", "exp, f32, wide", "exp, f32, wide", "off its bound",
    ]  # fmt: skip


def test_tables_name_builds_of_equal_bits():
    record = Record("tanh", 1, [outcome(ulps=2.0), outcome("b", differs=1), outcome("c")])
    text = tables([record], [])["f32"]
    assert text.splitlines()[0].startswith("| function | allowed, ulp | plain | b | c |")
    assert "| -1 to 1 | b = c | all |" in text
    assert "all float32" in line(record)


def test_records_are_kept_while_the_machine_code_is_the_same(tmp_path):
    save(Record("exp", 3, [outcome(ulps=1.25)]), tmp_path)
    known = load("exp", tmp_path)
    assert (known.name, known.step, known.outcomes[0].ulps) == ("exp", 3, 1.25)
    assert is_current(known, 3, ["1234"])
    assert not is_current(known, 1, ["1234"])
    assert not is_current(known, 3, ["5678"])
    assert load("log", tmp_path) is None


def test_times_are_a_row_for_each_function():
    head, *rows = compare(["exp", "tanh"]).splitlines()
    assert head.split() == ["function", *(build.name for build in builds())]
    assert [row.split()[0] for row in rows] == ["exp", "tanh"]
    assert all(float(cell) > 0 for row in rows for cell in row.split()[1:])


def test_bits_differ():
    a = np.float32([0.0, 1.0, NAN, 2.0])
    assert different_bits(a, np.float32([0.0, 1.0, -NAN, 2.0])) == 0
    assert different_bits(a, np.float32([-0.0, 1.0, 1.0, 2.0])) == 2
