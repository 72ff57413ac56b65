"""Interleaved timing: order, budget and ratios, on callables whose cost is known."""

from __future__ import annotations

import threading
import time

from tools.bench.timing import Timing, interleaved, speedups


def sleeper(seconds: float):
    return lambda: time.sleep(seconds)


def test_callables_take_turns():
    order: list[str] = []

    def slow(name: str):
        def call() -> None:
            order.append(name)
            time.sleep(0.04)

        return call

    interleaved({"a": slow("a"), "b": slow("b")}, budget_s=0, least_rounds=3)
    assert order[-6:] == ["a", "b"] * 3


def test_the_budget_ends_the_rounds_but_never_below_the_least():
    calls = {"a": sleeper(0.01)}
    assert len(interleaved(calls, budget_s=0, least_rounds=2)["a"].samples) == 2
    assert len(interleaved(calls, budget_s=60, least_rounds=1, most_rounds=4)["a"].samples) == 4


def test_short_calls_are_repeated_within_a_sample():
    count = 0

    def call() -> None:
        nonlocal count
        count += 1

    timing = interleaved({"a": call}, budget_s=0, least_rounds=1)["a"]
    assert count > 1000
    assert timing.median < 100e-6


def test_speedups_are_medians_of_rounds():
    timings = {"mine": Timing([1.0, 2.0, 1.0]), "other": Timing([2.0, 4.0, 9.0])}
    assert speedups(timings, "mine") == {"other": 2.0}


def test_spread_of_equal_samples_is_zero():
    assert Timing([3.0, 3.0, 3.0]).spread == 0.0


def test_a_sample_begins_when_the_threads_of_the_call_before_have_stopped():
    spinning: list[bool] = [False]
    seen: list[bool] = []

    def spin() -> None:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        spinning[0] = False

    def leaves_a_thread_behind() -> None:
        spinning[0] = True
        threading.Thread(target=spin).start()

    calls = {"a": leaves_a_thread_behind, "b": lambda: seen.append(spinning[0])}
    interleaved(calls, budget_s=0, least_rounds=2)
    assert seen
    assert not any(seen[-2:])
