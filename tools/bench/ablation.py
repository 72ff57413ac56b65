"""`python -m tools.bench.ablation [MODEL...]`: what each optimisation is worth.

Every model is compiled once with everything, and once more without each optimisation; all of them
run in turn in one process. Prints medians and, for each, how many times as slow it is without.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from cuvil.engine.front_door import compile_engine
from cuvil.options import Options
from tools.bench.timing import interleaved, speedups
from tools.models import zoo

WHOLE = "everything"
SWITCHES = {
    WHOLE: Options(),
    "--no-graph-fusion": Options(graph_fusion=False),
    "--disable-op-scheduling": Options(op_scheduling=False),
    "--disable-kernel contract": Options(disable_kernels=("contract",)),
    "--no-winograd": Options(disable_kernels=("winograd",)),
    "--disable-kernel depthwise": Options(disable_kernels=("depthwise",)),
    "--disable-kernel attention": Options(disable_kernels=("attention",)),
    "--opt-level 1": Options(opt_level=1),
    "--opt-level 0": Options(opt_level=0),
    "--variant avx2": Options(variant="avx2"),
    "--variant baseline": Options(variant="baseline"),
    "--precision bf16": Options(precision="bf16"),
}


def measure(name: str, seconds: float, threads: int) -> list[str]:
    """Lines of the table for one model."""
    case = zoo.get(name)
    inputs = case.inputs(0)
    calls = {}
    for switch, options in SWITCHES.items():
        engine = compile_engine(case.path, options, threads=threads)
        calls[switch] = partial(engine.run, None, inputs)
    timings = interleaved(calls, budget_s=seconds)
    ratios = speedups(timings, WHOLE)
    return [
        f"{name:14} {switch:28} {timing.median * 1e3:10.3f} ms {ratios.get(switch, 1.0):8.2f}x"
        for switch, timing in timings.items()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.ablation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("models", nargs="*", default=["bert-base", "resnet50"], metavar="MODEL")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each model, about")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    for name in options.models:
        print("\n".join(measure(name, options.seconds, options.threads)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
