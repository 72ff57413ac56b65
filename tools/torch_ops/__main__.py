"""python -m tools.torch_ops: how much of torch's operator database the backend compiles.

    python -m tools.torch_ops [--ops NAME,NAME] [--all] [--samples 8] [--every N] [--dynamic]

Every operator of `op_db` runs on cpu samples of float32, int64 and bool through torch.compile
with fullgraph=True, and is compared with eager. Results are kept in a file, so that a run which
was stopped goes on where it was; `--again` forgets them (and so it must be where other options
are given). All of it takes about ten minutes of one free cpu. Ends with 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.torch_ops.cases import cases
from tools.torch_ops.check import check
from tools.torch_ops.report import append, by_operator, read, summary


def main(argv: Sequence[str] | None = None) -> int:
    """The command; gives its exit code."""
    options = _parser().parse_args(argv)
    names = [n for n in options.ops.split(",") if n]
    path = Path(options.results)
    if options.again:
        path.unlink(missing_ok=True)
    done = read(path)
    most = None if options.all else options.samples
    wanted = cases(names)[options.start :: options.every]
    gc.freeze()  # modules and the database stay: collections need not walk them
    for case in wanted:
        if case.label in done:
            continue
        row = {"case": case.label, **check(case, most, options.dynamic)}
        append(path, row)
        done[case.label] = row
        print(f"{row['result']:9} {case.label} {row['why'][:150]}", flush=True)
    chosen = {c.label: done[c.label] for c in wanted}
    print(summary(chosen))
    return int("wrong" in by_operator(chosen).values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.torch_ops", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--ops", default="", help="names, with commas; by default all")
    parser.add_argument("--all", action="store_true", help="every sample, not the first few")
    parser.add_argument("--samples", type=int, default=8, help="samples per operator and type")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th case")
    parser.add_argument("--start", type=int, default=0, help="the first case of --every")
    parser.add_argument("--dynamic", action="store_true", help="sizes are symbolic")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--results", default="build/torch_ops.jsonl", help="where they are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
