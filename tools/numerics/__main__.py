"""`python -m tools.numerics [NAME...]`: how exact the compiled scalar functions are.

Functions of one operand run over every float32 (`--step 1`), in every build that this machine can
run, against the meaning in float64. It takes about half a minute for a function; results are kept
in build/numerics, and what is there for the same machine code is not measured again, so that the
command can be stopped and started at will. float64, the 16-bit types and pow follow, from samples
and over all 65,536 patterns. Exit status 1 when a bound or a range is broken.
"""

from __future__ import annotations

import argparse
import sys

from tools.numerics.builds import Compiled, builds, unary_rows
from tools.numerics.page import faults, line, write
from tools.numerics.samples import Sample, halves, powers, wide
from tools.numerics.speed import compare
from tools.numerics.store import Record, is_current, load, save
from tools.numerics.sweep import sweep


def main(argv: list[str] | None = None) -> int:
    """See the module's text."""
    names = [row.name for row in unary_rows("f32")]
    parser = argparse.ArgumentParser(prog="python -m tools.numerics", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions (default: all)")
    parser.add_argument("--step", type=int, default=1, help="every STEP-th float32 (default: all)")
    parser.add_argument("--tails", type=int, default=16, help="single elements: every N-th chunk")
    parser.add_argument("--again", action="store_true", help="measure what is known, too")
    parser.add_argument("--time", action="store_true", help="only time per element")
    parser.add_argument("--before", default="", metavar="REV", help="beside the code of a commit")
    parser.add_argument("--write", action="store_true", help="write docs/numerics.md anew")
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.names) - set(names)):
        parser.error(f"no function of one operand is called {', '.join(unknown)}")
    chosen = options.names or names
    if options.time or options.before:
        print(compare(chosen, options.before))
        return 0
    records = [measured(name, options.step, options.tails, options.again) for name in chosen]
    samples: list[Sample] = [] if options.names and not options.write else sampled()
    if options.write:
        write([r for r in map(load, names) if r is not None], samples)
    wrong = faults(records, samples)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


def measured(name: str, step: int, tails: int, again: bool) -> Record:
    """A function's record, from the last run where that still holds."""
    every = builds()
    known = load(name)
    digests = [Compiled(name, "f32", build).digest for build in every]
    if known is None or again or not is_current(known, step, digests):
        known = Record(name, step, sweep(name, every, step, tails))
        save(known)
    print(line(known), flush=True)
    return known


def sampled() -> list[Sample]:
    """float64, pow and the 16-bit types."""
    found = []
    for make in (wide, powers, halves):
        for sample in make(builds()):
            print(sample, flush=True)
            found.append(sample)
    return found


if __name__ == "__main__":
    sys.exit(main())
