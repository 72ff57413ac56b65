"""The measured limits are plausible rates of a real machine."""

from __future__ import annotations

from tools.bench.limits import measure


def test_limits_are_plausible():
    limits = measure(threads=1, attempts=1)
    assert 1e9 < limits.flops < 1e13
    assert 1e8 < limits.bytes_per_second < 1e13
    assert 0 < limits.fraction_of_peak(limits.flops / 2, 1.0) < 1
