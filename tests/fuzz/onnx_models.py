"""Random ONNX models: Cuvil against ONNX Runtime, which computes them node by node.

    python -m tests.fuzz.onnx_models --count 500
    python -m tests.fuzz.onnx_models --only 17             # one by itself, with its text

A model follows from its number. Every other one has names for its inputs' extents; where these are
refused, since two names stand for extents of which one is 1, it is compiled without. Prints every
difference, and how often each operator took part.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress

import numpy as np
import onnx

from cuvil.engine.front_door import compile_engine
from cuvil.errors import ShapeMismatchError
from cuvil.options import Options
from tests.fuzz.check import differences
from tests.fuzz.onnx_model import Array, Model, run_model
from tests.fuzz.onnx_steps import STEPS
from tests.fuzz.program import Misfit

NODES = 12
SIZES = (1, 2, 3, 4, 5, 7, 8, 16)


def build(number: int) -> Model:
    """The model of a number."""
    m = Model(number)
    shape = [int(m.choice(SIZES)) for _ in range(m.number_in(2, 4))]
    m.input(m.numbers(*shape))
    m.input(m.numbers(*shape[m.number_in(0, 1) :]))
    if m.chance(0.4):
        m.input(m.numbers(*shape, dtype=m.choice((np.int64, np.int32, bool, np.float64))))
    weights = np.array([w for w, _ in STEPS], np.float64)
    for _ in range(6 * NODES):
        if len(m.nodes) >= NODES:
            break
        step = STEPS[int(m.rng.choice(len(STEPS), p=weights / weights.sum()))][1]
        with suppress(Misfit):
            step(m)
    return m


def check(number: int) -> tuple[list[str], Counter[str]]:
    """What is wrong with a model, and its operators."""
    m = build(number)
    model = m.finished(symbolic=number % 2 == 1)
    operators = Counter(node.op_type for node in model.graph.node)
    operators["(names of extents refused)"] = 0
    wants = run_model(model, m.inputs)
    try:
        try:
            got = _compiled(model, m, number)
        except ShapeMismatchError:
            if number % 2 == 0:
                raise
            operators["(names of extents refused)"] += 1
            got = _compiled(m.finished(symbolic=False), m, number)
    except Exception:
        return [traceback.format_exc(limit=-4)], operators
    names = [o.name for o in model.graph.output]
    rows = zip(names, got, wants, strict=True)
    said = [(n, differences(np.asarray(g), w, n in m.exact)) for n, g, w in rows]
    return [f"{name}: {text}" for name, text in said if text], operators


def _compiled(model: onnx.ModelProto, m: Model, number: int) -> list[Array]:
    options = Options(opt_level=1 if number % 4 else 2)
    engine = compile_engine(model.SerializeToString(), options, threads=1)
    return engine.run(None, m.inputs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first number")
    parser.add_argument("--only", type=int, help="one model by itself, with its text")
    args = parser.parse_args()
    if args.only is not None:
        print(onnx.printer.to_text(build(args.only).finished(args.only % 2 == 1)))
        args.seed, args.count = args.only, 1
    started, bad, total = time.perf_counter(), 0, Counter[str]()
    for number in range(args.seed, args.seed + args.count):
        faults, operators = check(number)
        total.update(operators)
        bad += bool(faults)
        for fault in faults[:3]:
            print(f"-- model {number}: {fault}", flush=True)
    print(f"operators ({len(total)}): {', '.join(f'{n} {k}' for n, k in total.most_common())}")
    print(f"{args.count} models, {bad} with faults, {time.perf_counter() - started:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
