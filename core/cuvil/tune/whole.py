"""The last word on what was tuned: the whole model, as it would be and as it is by costs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from cuvil.codegen.build import Code
from cuvil.codegen.weights_file import write_weights
from cuvil.engine.engine import Engine
from cuvil.pipeline import Setting, workers
from cuvil.plan.plan import Plan
from cuvil.tune.extents import sample_of, zeros_at
from cuvil.tune.measure import Clock, interleaved
from cuvil.tune.trials import load_code, plan_code
from cuvil_runtime import default_threads

Choices = Mapping[str, Sequence[int]]


def name_of(plan: Plan, choices: Choices, setting: Setting) -> str:
    """What tells tuned models apart."""
    return f"model {plan_code(plan, choices, setting).build_id.hex()}"


def gain_of(
    tuned: tuple[Plan, Choices], usual: Plan, setting: Setting, seconds: float, clock: Clock
) -> float:
    """How many times faster the tuned model is than the usual one, on zeros: the lesser of what one
    thread and all threads say."""
    codes = [plan_code(*tuned, setting), plan_code(usual, {}, setting)]
    made = iter(workers().compile([unit for code in codes for unit in code.units]))
    parts = [[next(made) for _ in code.units] for code in codes]
    threads = {1, default_threads()}
    gains = []
    with tempfile.TemporaryDirectory(prefix="cuvil-tune-") as scratch:
        plans = tuned[0], usual
        weights = [_weights(p, c, Path(scratch, str(i)))
                   for i, (p, c) in enumerate(zip(plans, codes, strict=True))]  # fmt: skip
        for count in sorted(threads):
            calls = {}
            for name, code, objects, image in zip("tu", codes, parts, weights, strict=True):
                engine = Engine(load_code(code, objects, threads=count, weights=image))
                feed = zeros_at(usual.inputs, sample_of(usual))
                calls[name] = lambda run=engine.model.run, feed=feed: run(feed)
            samples = interleaved(calls, seconds / len(threads), clock)
            ratios = [u / t for t, u in zip(samples["t"], samples["u"], strict=True)]
            gains.append(float(median(ratios)))
    return min(gains)


def _weights(plan: Plan, code: Code, path: Path) -> str | None:
    if not plan.weights_bytes:
        return None
    write_weights(path, code.build_id, plan.weights_bytes, plan.weight_chunks())
    return str(path)


def runs_on_zeros(plan: Plan) -> bool:
    """Whether extents of all inputs are known, or in ranges with an end, so that zeros are as good
    as others for timing."""
    known = len(sample_of(plan)) == len(plan.symbols)
    return known and all(p.type.dtype.numpy != np.dtype(object) for p in plan.inputs)
