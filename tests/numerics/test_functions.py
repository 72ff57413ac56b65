"""Ranges, special values and equal bits of the scalar functions, in every build."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cuvil.ops.scalars import evaluate, scalar
from tools.numerics.builds import builds, compiled, unary_rows
from tools.numerics.checker import LANES
from tools.numerics.samples import halves, ulp_errors
from tools.numerics.sweep import different_bits, patterns, rules_of

NAMES = [row.name for row in unary_rows("f32")]
STEP = 65521  # a prime: 65552 patterns of all exponents
ODD = (
    *("neg", "floor", "ceil", "round", "trunc", "sin", "tan", "asin", "atan", "sinh"),
    *("tanh", "asinh", "atanh", "erf", "log1p", "expm1", "softsign", "leaky_relu", "elu"),
)
INF, NAN = math.inf, math.nan
SPECIAL = {  # of -inf, inf
    "exp": (0, INF), "exp2": (0, INF), "expm1": (-1, INF), "log": (NAN, INF), "log1p": (NAN, INF),
    "sin": (NAN, NAN), "cos": (NAN, NAN), "tan": (NAN, NAN), "asin": (NAN, NAN),
    "acos": (NAN, NAN), "atan": (-math.pi / 2, math.pi / 2), "sinh": (-INF, INF),
    "cosh": (INF, INF), "tanh": (-1, 1), "asinh": (-INF, INF), "acosh": (NAN, INF),
    "atanh": (NAN, NAN), "erf": (-1, 1), "sigmoid": (0, 1), "sqrt": (NAN, INF), "rsqrt": (NAN, 0),
    "reciprocal": (-0.0, 0), "softplus": (0, INF),
}  # fmt: skip


@pytest.fixture(scope="module", params=builds(), ids=lambda build: build.name)
def functions(request):
    """All functions in one build."""
    return compiled(NAMES, "f32", request.param)


@pytest.fixture(scope="module")
def sample():
    """Float32 of all exponents, with the interesting ones in front."""
    edges = [0, 1, 0.5, 87.3, 88.8, 103.9, 104.1, 2.0**-126, 2.0**-149, 2.0**-127, 1 - 2.0**-24]
    edges += [1 + 2.0**-23, 9.2, 3.93, 17.4, 0.8813736, 1.6e6, 3.4e38, INF, NAN, 2.5, 3.5]
    drawn = np.random.default_rng(3).standard_normal(4096) * 8
    every = np.concatenate(list(patterns(STEP)))
    edges = np.array(edges, np.float32)
    x = np.concatenate([edges, -edges, drawn.astype(np.float32), every])
    return np.ascontiguousarray(x[: x.size // LANES * LANES])


@pytest.mark.parametrize("name", NAMES)
def test_errors_and_range(functions, sample, name):
    row, rules = scalar(name), rules_of(name, functions[name].build.facts.fma)
    value = functions[name].body(sample)
    with np.errstate(all="ignore"):
        exact = evaluate(name, sample.astype(np.float64))
        slack = rules.slack * 2.0**-23 * np.maximum(1, np.abs(sample.astype(np.float64)))
    near = ~(np.abs(sample) > rules.far)
    assert ulp_errors(value[near], exact[near], slack[near]).max() <= max(row.ulp, 0.5)
    assert not ((value < rules.low) | (value > rules.high)).any()


@pytest.mark.parametrize("name", NAMES)
def test_one_element_has_the_bits_of_many(functions, sample, name):
    value = functions[name].body(sample)
    assert different_bits(functions[name].tail(sample), value) == 0
    for count in (1, 3, 15, 17, 37):  # the loop's own tail
        part = functions[name].body(np.ascontiguousarray(sample[:count]))
        assert different_bits(part, value[:count]) == 0


@pytest.mark.parametrize("name", SPECIAL)
def test_infinities_and_nan(functions, name):
    x = np.float32([-INF, INF, NAN])
    expected = np.float32([*SPECIAL[name], NAN])
    np.testing.assert_array_equal(functions[name].body(x), expected)


@pytest.mark.parametrize("name", ODD)
def test_zero_keeps_its_sign(functions, name):
    value = functions[name].body(np.float32([0.0, -0.0]))
    assert value.tolist() == [0, 0]
    assert np.signbit(value).tolist() == ([True, False] if name == "neg" else [False, True])


WHOLE = ("floor", "ceil", "round", "trunc")


@pytest.mark.parametrize("name", [n for n in ODD if n not in WHOLE])
def test_denormals(functions, name):
    """Where a function is near x (1.128 x for erf), so it is for a denormal."""
    x = np.float32([2.0**-149, -(2.0**-130), 2.0**-127 + 2.0**-149])
    expected = evaluate(name, x.astype(np.float64)).astype(np.float32)
    got = functions[name].body(x)
    assert np.abs(got.view(np.int32) - expected.view(np.int32)).max() <= 1


def test_sixteen_bits_are_float32_rounded_once():
    """All 65,536 patterns of float16 and of bfloat16."""
    some = ("exp", "log", "tanh", "erf", "sigmoid", "gelu", "silu", "sin", "sqrt")
    samples = list(halves(builds(), some))
    assert len(samples) == 2 * len(some) * len(builds())
    assert [str(s) for s in samples if s.faults or s.count != 65536] == []


def test_fused_builds_agree(sample):
    """Builds with a fused multiply-add have the same bits, whatever their vectors' width."""
    fused = [compiled(NAMES, "f32", build) for build in builds() if build.facts.fma]
    for other in fused[1:]:
        for name in NAMES:
            assert different_bits(fused[0][name].body(sample), other[name].body(sample)) == 0, name
