"""All fuzzers in turn: damaged models, random graphs, random ONNX models.

    python -m tools.fuzz [--models 2000] [--graphs 20000] [--onnx 500] [--seed 0] [--jobs 1]

Prints every fault with the number that repeats it; ends with status 1 where there was one, or
where a rule took no part in a whole run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=2000, help="damaged models to try")
    parser.add_argument("--graphs", type=int, default=20_000, help="random graphs to try")
    parser.add_argument("--onnx", type=int, default=500, help="random ONNX models to try")
    parser.add_argument("--seed", type=int, default=0, help="the first number of all")
    parser.add_argument("--jobs", type=int, default=1, help="processes for random graphs")
    parser.add_argument("--log", default="", help="a file of graphs that are done, to go on from")
    args = parser.parse_args()
    seed, jobs = str(args.seed), str(args.jobs)
    commands = (
        ["tests.fuzz.mutate", "--count", str(args.models), "--start", seed],
        ["tests.fuzz.onnx_models", "--count", str(args.onnx), "--seed", seed],
        ["tests.fuzz.differential", "--count", str(args.graphs), "--seed", seed, "--jobs", jobs,
         "--log", args.log],
    )  # fmt: skip
    status = 0
    for command in commands:
        print(f"-- {' '.join(command)}", flush=True)
        status |= subprocess.call([sys.executable, "-m", *command])
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
