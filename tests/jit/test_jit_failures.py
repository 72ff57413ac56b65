"""Lists that are calculated in vectors: what fails in the middle fails as in the interpreter."""

# What is tested is how the functions behave, not how they are typed.

from __future__ import annotations

import math

import numpy as np
import pytest
from jit.same import alike, check, outcome

import cuvil

WRONG = [-2.0, 1e200, -math.inf, math.inf, math.nan, 0.0, "x", 3, None]


def norms(pairs):
    return [math.sqrt(x**2 + y**2) for x, y in pairs]


def quotients(pairs):
    rows = [[math.sqrt(x) / y + z for x, y in pairs] for z in (0.0, 1.0)]
    return rows, [-math.sqrt(x) for row in rows for x in row], [x * y for y, x in pairs if x > 3.0]


def after_a_write(pairs, out):
    out[0] += 1.0
    return [math.sqrt(x) for x, y in pairs], [1.0 / y for x, y in pairs]


def pairs_with(wrong, length, at):
    pairs = [(i + 0.5, i + 1.25) for i in range(length)]
    return pairs[:at] + [(1.0, wrong), (wrong, 2.0)] + pairs[at:]


@pytest.mark.parametrize("function", [norms, quotients])
def test_all_is_well(function):
    check(function, *(([(i + 0.5, i + 1.25) for i in range(n)],) for n in (1, 2, 7, 16, 100)))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("length, at", [(0, 0), (37, 0), (37, 20), (37, 37)])
def test_a_failure_in_the_middle(wrong, length, at):
    pairs = pairs_with(wrong, length, at)
    for function in (norms, quotients):
        assert alike(outcome(cuvil.jit(function), (pairs,)), outcome(function, (pairs,)))


@pytest.mark.parametrize("wrong", WRONG)
def test_a_failure_after_a_write(wrong):
    args = (pairs_with(wrong, 20, 9), np.zeros(1))
    found, expected = outcome(cuvil.jit(after_a_write), args), outcome(after_a_write, args)
    assert found[0] == expected[0]
    assert alike(found[2], expected[2])


def test_the_first_failure_is_the_one_that_is_told():
    def both(pairs, out):
        out[0] = 1.0
        return [math.sqrt(x) / y for x, y in pairs]

    jitted, out = cuvil.jit(both), np.zeros(1)
    with pytest.raises(ZeroDivisionError):
        jitted([(1.0, 1.0)] * 9 + [(1.0, 0.0), (-1.0, 1.0)], out)
    with pytest.raises(ValueError, match="math domain error"):
        jitted([(1.0, 1.0)] * 9 + [(-1.0, 1.0), (1.0, 0.0)], out)
