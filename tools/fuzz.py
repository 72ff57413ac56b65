"""All fuzzers in turn: damaged models, then random programs.

    python -m tools.fuzz [--models 2000] [--programs 200] [--seed 0]

Prints every fault with the number that repeats it; ends with status 1 where there was one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=2000, help="damaged models to try")
    parser.add_argument("--programs", type=int, default=200, help="random programs to try")
    parser.add_argument("--seed", type=int, default=0, help="the first number of both")
    args = parser.parse_args()
    seed = str(args.seed)
    commands = (
        ["tests.fuzz.mutate", "--count", str(args.models), "--start", seed],
        ["tests.fuzz.differential", "--count", str(args.programs), "--seed", seed],
    )
    status = 0
    for command in commands:
        print(f"-- {' '.join(command)}", flush=True)
        status |= subprocess.call([sys.executable, "-m", *command])
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
