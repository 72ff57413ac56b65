"""`python -m tools.bench [MODEL...]`: the speed of the fixed list beside the installed peers.

Each model runs in a process of its own, its engines in turn: ratios are medians over rounds. "of
peak" is the model's arithmetic over the most that this machine can do; "first ms" the time from
the file to the first result; "error" the largest difference from ONNX Runtime in multiples of
what is allowed. The report goes to build/bench.json, a chart to build/speed.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import cuvil
from tools.bench import limits, publish
from tools.bench.chart import chart
from tools.bench.report import HEADINGS, Report, dynamic_line, row_lines, short, summary
from tools.bench.suite import OWN, Row, Rules, fixed_list, measure_dynamic, measure_speed
from tools.models.case import ZooError

KINDS: dict[str, Callable[[str, Rules], Row]] = {
    "speed": measure_speed,
    "dynamic": measure_dynamic,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 when a model could not be measured or its outputs are wrong."""
    options = _parser().parse_args(argv)
    rules = Rules(options.threads, options.seconds, tuple(filter(None, options.vs.split(","))),
                  options.precision)  # fmt: skip
    if options.quick:
        rules = replace(rules, seconds=1.0)
    if options.child:
        return _child(options.child, options.models[0], rules)
    report = Report(machine(options.threads), options.threads)
    print(report.machine)
    busy, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if busy > max(0.5, cpus - options.threads):
        print(f"bench: {busy:.1f} other programs run on {cpus} cpus: times will be too long")
    _fill(report, options, rules)
    print("\n".join(summary(report)))
    build = Path("build")
    build.mkdir(exist_ok=True)
    (build / "bench.json").write_text(json.dumps(report.to_json(), indent=1), encoding="utf-8")
    (build / "speed.svg").write_text(chart(report), encoding="utf-8")
    print("build/bench.json and build/speed.svg are written")
    if options.publish and options.list == "speed" and rules.precision == "fp32":
        publish.publish(report)
    return 1 if any(map(_wrong, report.rows + report.dynamic)) else 0


def machine(threads: int) -> str:
    """The cpu, how many of them, and what so many threads can do at most, measured."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    rates = limits.measure(threads)
    return (
        f"{names[0] if names else os.uname().machine}, {len(os.sched_getaffinity(0))} cpus; "
        f"{threads} thread{'s' if threads > 1 else ''}: {rates.flops / 1e9:.0f} GFLOP/s fp32, "
        f"{rates.bytes_per_second / 1e9:.0f} GB/s read"
    )


def _fill(report: Report, options: argparse.Namespace, rules: Rules) -> None:
    models = options.models
    print(HEADINGS, flush=True)
    for name in models or fixed_list(options.list):
        row = _in_child("speed", name, rules)
        report.rows.append(row)
        print("\n".join(row_lines(row, report.peak_gflops)), flush=True)
    free = fixed_list("dynamic") if options.list == "speed" else []
    for name in [n for n in free if not models or n in models]:
        row = _in_child("dynamic", name, rules)
        report.dynamic.append(row)
        print(dynamic_line(row), flush=True)


def _in_child(kind: str, name: str, rules: Rules) -> Row:
    command = [sys.executable, "-m", "tools.bench", name, "--child", kind]
    command += ["--threads", str(rules.threads), "--seconds", str(rules.seconds)]
    command += ["--vs", ",".join(rules.peers), "--precision", rules.precision]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return Row(name, problem=short(said[-1], 300))
    return Row.from_json(json.loads(done.stdout.splitlines()[-1]))


def _child(kind: str, name: str, rules: Rules) -> int:
    try:
        row = KINDS[kind](name, rules)
    except (ZooError, cuvil.Error) as error:
        row = Row(name, problem=f"{type(error).__name__}: {error}")
    print(json.dumps(row.to_json()))
    return 0


def _wrong(row: Row) -> bool:
    own = row.engines.get(OWN)
    return own is None or (own.error or 0) > 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a zoo model; without: the list")
    parser.add_argument(
        "--list", default="speed", choices=["speed", "quantized"], help="which models, unless named"
    )
    parser.add_argument("--threads", type=int, default=1, help="of every engine (default: 1)")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each model, about")
    parser.add_argument("--quick", action="store_true", help="one second for each model")
    peers = ",".join(Rules().peers)
    parser.add_argument("--vs", default=peers, help=f"engines to compare with (default: {peers})")
    precisions = ["fp32", "bf16", "fp16"]
    parser.add_argument("--precision", default="fp32", choices=precisions, help="of cuvil")
    parser.add_argument(
        "--publish", action="store_true", help="put chart and tables into docs/ and the README"
    )
    parser.add_argument("--child", choices=sorted(KINDS), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
