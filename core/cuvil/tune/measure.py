"""Which of several calls is fastest: the usual one, unless another wins clearly, and twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

Clock = Callable[[], float]
Calls = Mapping[str, Callable[[], object]]

MARGIN = 1.03  # how much faster another has to be, in the median over rounds
SHARE = 0.75  # of the rounds that it has to win
SHORTEST_S = 200e-6  # a sample that is shorter repeats its call
LEAST_ROUNDS, MOST_ROUNDS = 7, 60


def fastest(
    calls: Calls, again: Calls, seconds: float, clock: Clock = time.perf_counter
) -> tuple[str, float]:
    """The name of the fastest call and how many times faster than the first it is.

    The first is the usual one. Another replaces it only where its median is the least, the median
    of ratios in the same round is at least `MARGIN`, it wins `SHARE` of the rounds, and all of that
    is so once more when just the two are compared: chance has no second try. again: what is called
    then: the same on all threads. seconds: for both.
    """
    usual = next(iter(calls))
    best, gain = _winner(calls, usual, seconds * 2 / 3, clock)
    if best == usual:
        return usual, 1.0
    pair = {usual: again[usual], best: again[best]}
    again_best, second = _winner(pair, usual, seconds / 3, clock)
    return (best, min(gain, second)) if again_best == best else (usual, 1.0)


def _winner(calls: Calls, usual: str, seconds: float, clock: Clock) -> tuple[str, float]:
    samples = interleaved(calls, seconds, clock)
    best = min(samples, key=lambda name: median(samples[name]))
    ratios = [a / b for a, b in zip(samples[usual], samples[best], strict=True)]
    won = sum(r > 1 for r in ratios) >= SHARE * len(ratios)
    clear = best != usual and median(ratios) >= MARGIN and won
    return (best, median(ratios)) if clear else (usual, 1.0)


def interleaved(calls: Calls, seconds: float, clock: Clock) -> dict[str, list[float]]:
    """Seconds per call: in each round every call is timed once, so that what slows the machine for
    a while slows all. At least `LEAST_ROUNDS` rounds, whatever they take."""
    end = clock() + seconds
    repeats = {name: _repeats(call, clock) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for done in range(MOST_ROUNDS):
        if done >= LEAST_ROUNDS and clock() > end:
            break
        for name, call in calls.items():
            samples[name].append(_sample(call, repeats[name], clock))
    return samples


def _repeats(call: Callable[[], object], clock: Clock) -> int:
    call()
    cost = min(_sample(call, 1, clock) for _ in range(2))
    return max(1, min(100, round(SHORTEST_S / max(cost, 1e-7))))


def _sample(call: Callable[[], object], count: int, clock: Clock) -> float:
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count
