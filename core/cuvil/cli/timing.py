"""Timing of several callables in turn, in one process, so that their ratio can be trusted.

Whatever slows the machine for a while slows all of them alike; each round times every callable
once, and the medians over rounds are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

SHORTEST_SAMPLE_S = 500e-6
"""A sample shorter than this repeats its call, so that reading the clock does not matter."""

SETTLE_S = 0.01
"""Threads of the engine that ran before spin for a while, on cores that this one wants: before each
sample the process rests by steps of this length until a step took next to no cpu time."""

BUSY_SHARE, MOST_STEPS = 0.1, 50
"""Of one cpu, above which a step was not rest; and when an engine that never rests is let be."""

LONGEST_WARMED_S = 30e-3
"""Up to this long, a call runs once untimed before each sample.

The callable before it left its own data in the caches and its own threads spinning.
"""


@dataclass
class Timing:
    """Seconds per call of one callable, one sample a round."""

    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def spread(self) -> float:
        """Half of the samples lie within this fraction of the median: 0.02 is a calm machine."""
        return median(abs(sample - self.median) for sample in self.samples) / self.median


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    budget_s: float = 5.0,
    least_rounds: int = 5,
    most_rounds: int = 200,
) -> dict[str, Timing]:
    """Time every callable once a round until the budget is spent.

    At least `least_rounds` rounds run whatever they cost; an untimed round and the calibration
    of short calls come first.
    """
    repeats = {name: _repeats(call) for name, call in calls.items()}
    timings = {name: Timing() for name in calls}
    end = time.perf_counter() + budget_s
    for done in range(most_rounds):
        if done >= least_rounds and time.perf_counter() > end:
            break
        for name, call in calls.items():
            timings[name].samples.append(_sample(call, repeats[name]))
    return timings


def speedups(timings: Mapping[str, Timing], subject: str) -> dict[str, float]:
    """How many times faster `subject` is than each other one: the median of per-round ratios."""
    own = timings[subject].samples
    return {
        name: median(other / mine for other, mine in zip(timing.samples, own, strict=True))
        for name, timing in timings.items()
        if name != subject
    }


@dataclass(frozen=True)
class _Repeats:
    warm: int
    timed: int


def _repeats(call: Callable[[], object]) -> _Repeats:
    """How often a sample repeats the call, from the quickest of a few first calls."""
    call()
    cost = min(_seconds(call, 1) for _ in range(3))
    timed = max(1, round(SHORTEST_SAMPLE_S / max(cost, 1e-7)))
    return _Repeats(warm=1 if cost * timed <= LONGEST_WARMED_S else 0, timed=timed)


def _sample(call: Callable[[], object], repeats: _Repeats) -> float:
    _settle()
    for _ in range(repeats.warm):
        call()
    return _seconds(call, repeats.timed)


def _settle() -> None:
    for _ in range(MOST_STEPS):
        before = time.process_time()
        time.sleep(SETTLE_S)
        if time.process_time() - before < BUSY_SHARE * SETTLE_S:
            return


def _seconds(call: Callable[[], object], count: int) -> float:
    """Seconds per call over `count` calls."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
