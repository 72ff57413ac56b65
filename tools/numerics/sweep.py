"""One function of one operand over the float32 bit patterns, all builds in one pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.ops.scalars import scalar
from cuvil.targets.backend import VariantSpec
from tools.numerics.builds import Compiled
from tools.numerics.checker import LANES, Checker, Found, Rules
from tools.numerics.exact import Exact, far

Array = np.ndarray[Any, Any]

__all__ = ["RANGES", "Outcome", "patterns", "sweep"]

CHUNK = 1 << 16
_DENORMAL = 2.0**-126  # the least denormal, in units of epsilon
_PI = float(np.float32(math.pi))  # what the exact bound rounds to
RANGES = {
    "tanh": (-1.0, 1.0), "erf": (-1.0, 1.0), "sigmoid": (0.0, 1.0), "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0), "acos": (0.0, _PI), "exp": (0.0, math.inf), "exp2": (0.0, math.inf),
    "asin": (-_PI / 2, _PI / 2), "atan": (-_PI / 2, _PI / 2), "expm1": (-1.0, math.inf),
    "cosh": (1.0, math.inf), "acosh": (0.0, math.inf), "softplus": (0.0, math.inf),
    "softsign": (-1.0, 1.0), "hardsigmoid": (0.0, 1.0), "sqrt": (0.0, math.inf),
    "relu": (0.0, math.inf), "sign": (-1.0, 1.0),
}  # fmt: skip


@dataclass
class Outcome:
    """What one build has shown; see `checker.Found`, and `*_at` for the operand that showed it.

    faults: the most in one chunk. tails: elements whose code for one element at a time gave other
    bits. differs: elements with other bits than in the build before.
    """

    build: str
    digest: str
    ulps: float = 0.0
    ulps_at: float = math.nan
    scaled: float = 0.0
    scaled_at: float = math.nan
    faults: int = 0
    faults_at: float = math.nan
    tails: int = 0
    differs: int = 0


def patterns(step: int, part: int = 0, parts: int = 1) -> Iterator[Array]:
    """Float32 arrays of every `step`-th bit pattern (at most 65535), in chunks; of these every
    `parts`-th from number `part`."""
    first = np.arange(0, CHUNK * step, step, dtype=np.uint32)
    for start in range(part * CHUNK * step, 1 << 32, CHUNK * step * parts):
        count = min(CHUNK, ((1 << 32) - start) // step // LANES * LANES)
        yield (first[:count] + np.uint32(start)).view(np.float32)


def sweep(
    name: str, builds: Sequence[VariantSpec], step: int, tails: int, parts: int = 1
) -> list[Outcome]:
    """An outcome for each build, over every `step`-th pattern; single elements are compared in
    every `tails`-th chunk. OracleError where two ways to the exact value differ."""
    exact, check = (
        Exact(name, builds[-1], CHUNK),
        Checker(builds[-1].facts, scaled=scalar(name).slack > 0),
    )
    watches = [_Watch(Compiled(name, "f32", build), check) for build in builds]
    for number, x in enumerate(patterns(step, 0, parts)):
        real = exact(x)
        for watch, before in zip(watches, [None, *watches], strict=False):
            watch.look(x, real, before, with_tail=number % tails == 0)
    return [watch.finish() for watch in watches]


def rules_of(name: str, fma: bool) -> Rules:
    """What a row of the scalar table allows, in a build with or without a fused multiply-add. A
    composition may lose a denormal on its way."""
    row = scalar(name)
    slack = row.slack + (_DENORMAL if row.expansion else 0.0)
    return Rules(slack, *RANGES.get(name, (-math.inf, math.inf)), far=far(name, fma))


def different_bits(a: Array, b: Array) -> int:
    """How many float32 differ; one NaN is as good as another."""
    differs = a.view(np.uint32) != b.view(np.uint32)
    return int((differs & ~(np.isnan(a) & np.isnan(b))).sum()) if differs.any() else 0


class _Watch:
    """One build of a function, and the chunks that show the largest of each kind so far."""

    def __init__(self, function: Compiled, check: Checker) -> None:
        self.function, self.check = function, check
        self.outcome = Outcome(function.build.name, function.digest)
        self.rules = rules_of(function.name, function.build.facts.fma)
        self.value = self.buffer = np.empty(CHUNK, np.float32)
        self.found = Found(0.0, 0.0, 0)
        self.worst: dict[str, tuple[Array, ...]] = {}

    def look(self, x: Array, real: Array, before: _Watch | None, with_tail: bool) -> None:
        """Takes a chunk in; `before` has done so. What has the same bits need not be checked."""
        value = self.value = self.function.body(x, out=self.buffer[: x.size])
        differs = 0 if before is None else different_bits(before.value, value)
        if before is None or differs:
            self.found = self._check(x, value, real)
        else:
            self.found = before.found
        self.outcome.differs += differs
        for kind in ("ulps", "scaled", "faults"):
            if getattr(self.found, kind) > getattr(self.outcome, kind):
                setattr(self.outcome, kind, getattr(self.found, kind))
                self.worst[kind] = (x, value.copy(), real.copy())
        if with_tail:
            self.outcome.tails += different_bits(self.function.tail(x), value)

    def _check(self, x: Array, value: Array, real: Array) -> Found:
        return self.check(x, value, real, self.rules)

    def finish(self) -> Outcome:
        """The outcome, with the operands of what was worst."""
        for kind, chunk in self.worst.items():
            setattr(self.outcome, f"{kind}_at", self._where(kind, chunk))
        return self.outcome

    def _where(self, kind: str, chunk: tuple[Array, ...]) -> float:
        blocks = [[a[i : i + LANES] for a in chunk] for i in range(0, chunk[0].size, LANES)]
        block = max(blocks, key=lambda arrays: getattr(self._check(*arrays), kind))
        lanes = [[np.repeat(a[i], LANES) for a in block] for i in range(LANES)]
        lane = max(lanes, key=lambda arrays: getattr(self._check(*arrays), kind))
        return float(lane[0][0])
