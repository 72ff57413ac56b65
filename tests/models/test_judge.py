"""The comparison rule itself: what passes, what fails and what the message says."""

from __future__ import annotations

import numpy as np
import pytest

from tools.models.judge import Errors, assert_accurate, assert_close

REF = np.array([[100.0, 1.0], [0.0, -1.0]], np.float32)


def test_errors_within_the_bound_pass():
    assert_close("y", REF + np.float32(9e-4), REF)


def test_the_message_names_output_index_and_values():
    got = REF.copy()
    got[1, 0] = 0.5
    with pytest.raises(AssertionError, match=r"'y': 1 of 4 .* \(1, 0\): got .*0\.5.* expected"):
        assert_close("y", got, REF)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_special_values_must_stand_in_the_same_places(odd: float):
    special = REF.copy()
    special[0, 1] = odd
    assert_close("y", special.copy(), special)
    for got, ref in ((special, REF), (REF, special)):
        with pytest.raises(AssertionError, match=r"\(0, 1\)"):
            assert_close("y", got, ref)


def test_integers_and_booleans_are_exact():
    assert_close("n", np.arange(3), np.arange(3))
    with pytest.raises(AssertionError, match="1 of 3"):
        assert_close("n", np.array([0, 1, 3]), np.arange(3))
    with pytest.raises(AssertionError, match="1 of 2"):
        assert_close("b", np.array([True, False]), np.array([True, True]))


def test_shapes_and_dtypes_must_agree():
    with pytest.raises(AssertionError, match="shape"):
        assert_close("y", REF[0], REF)
    with pytest.raises(AssertionError, match="dtype"):
        assert_close("y", REF.astype(np.float64), REF)


def test_empty_outputs_agree():
    assert_close("y", np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))


def errors(exact: np.ndarray, own: float, reference: float) -> Errors:
    found = Errors()
    found.add(
        (exact + [0, own]).astype(np.float32), (exact + [0, reference]).astype(np.float32), exact
    )
    return found


def test_error_against_float64_is_measured_by_the_reference():
    exact = np.array([1.0, 2.0])
    assert_accurate("y", errors(exact, 3e-5, 1e-5))
    with pytest.raises(AssertionError, match=r"5 times the reference.*at most 4\.0"):
        assert_accurate("y", errors(exact, 5e-5, 1e-5))


def test_an_exact_reference_counts_as_off_by_two_roundings():
    exact = np.array([1.0, 2.0])
    assert errors(exact, 9.54e-7, 0).ratio == pytest.approx(2, rel=0.01)
    assert errors(exact, 0, 0).ratio == 0


def test_engines_are_compared_over_all_runs():
    exact, found = np.array([1.0, 2.0]), Errors()
    for own, reference in ((4e-5, 1e-5), (1e-6, 8e-5)):
        found.add(*((exact + error).astype(np.float32) for error in (own, reference)), exact)
    assert found.ratio == pytest.approx(0.5, rel=0.02)
