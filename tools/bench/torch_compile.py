"""`python -m tools.bench.torch_compile [MODEL...]`: torch.compile by cuvil, by inductor, and eager.

Medians of the three in turn in one process, one thread, float32; "x inductor" and "x eager" say how
many times as fast cuvil is (medians over rounds). "cold s" is from where dynamo has captured the
first graph to the first result, in a process with an empty cache; "warm s" the same with what
another process has left in it, and "whole" the warm call in all: dynamo's capture is the same for
every backend. "error" is the largest difference from eager in multiples of what is allowed: 1e-5
of the largest number and 1e-4 of each. The last row is a module that takes no time: what a call
costs. The report goes to build/torch_compile.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from cuvil.integrations.torch_compile.observe import observed
from tools.bench.timing import interleaved, speedups
from tools.bench.torch_models import MODELS, TINY, sample

OWN, PEER, EAGER = "cuvil", "inductor", "eager"
REPORT = Path("build/torch_compile.json")
Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 when a model could not be measured or its outputs are wrong."""
    options = _parser().parse_args(argv)
    if options.child:
        print(json.dumps(CHILDREN[options.child](options.models[0], options.seconds)))
        return 0
    print(HEADINGS)
    rows = []
    for name in options.models or MODELS:
        rows.append(measure(name, options.seconds))
        print(line(rows[-1]), flush=True)
    print("\n".join(summary(rows)))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps({"rows": rows, **means(rows)}, indent=1), encoding="utf-8")
    print(f"{REPORT} is written")
    return int(any("problem" in row or row["error"] > 1 for row in rows))


def measure(name: str, seconds: float) -> Row:
    """One model, each part in a process of its own; "problem" says why one failed."""
    row: Row = {"name": name}
    with tempfile.TemporaryDirectory() as folder:
        try:
            row["cold"] = child("first", name, seconds, folder)
            row["warm"] = child("first", name, seconds, folder)
            row["peer_cold"] = child("first_of_peer", name, seconds, folder)
            row |= child("speed", name, seconds, folder)
        except subprocess.CalledProcessError as error:
            row["problem"] = (error.stderr.strip().splitlines() or [str(error)])[-1]
    return row


def child(part: str, name: str, seconds: float, folder: str) -> Row:
    """What one of `CHILDREN` finds, with its caches in a folder."""
    command = [sys.executable, "-m", "tools.bench.torch_compile", name, "--child", part]
    caches = {"CUVIL_CACHE_DIR": f"{folder}/cuvil", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
    done = subprocess.run(
        [*command, "--seconds", str(seconds)],
        env={**os.environ, **caches, "OMP_NUM_THREADS": "1", "CUVIL_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def first_call(name: str, backend: str) -> Row:
    """Seconds to a compiled model's first result: first_s in all, compile_s from where dynamo has
    its first graph."""
    torch.set_num_threads(1)
    model, inputs = sample(name)
    captured: list[float] = []

    def compile_graph(module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        captured.append(time.perf_counter())
        compiler: Callable[..., Any] = torch._dynamo.lookup_backend(backend)
        made: Callable[..., Any] = compiler(module, inputs)
        return made

    with torch.inference_mode():
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))  # torch's own imports
        start = time.perf_counter()
        torch.compile(model, backend=compile_graph)(**inputs)
        end = time.perf_counter()
    return {"first_s": end - start, "compile_s": end - captured[0]}


def speed(name: str, seconds: float) -> Row:
    """Times of a call by each, and how far cuvil is from eager."""
    torch.set_num_threads(1)
    model, inputs = sample(name)
    runs = {OWN: torch.compile(model, backend=OWN), PEER: torch.compile(model, backend=PEER)}
    with torch.inference_mode():
        with observed() as graphs:
            found = runs[OWN](**inputs)
        every: dict[str, Callable[..., Any]] = {**runs, EAGER: model}
        calls = {n: _call(run, inputs) for n, run in every.items()}
        timings = interleaved(calls, seconds)
        ratios = speedups(timings, OWN)
        return {
            **{f"{n}_ms": timing.median * 1e3 for n, timing in timings.items()},
            "x_inductor": ratios[PEER],
            "x_eager": ratios[EAGER],
            "error": error_of(found, model(**inputs)),
            "graphs": len(graphs),
            "native": all(not g.problems and g.failure is None for g in graphs),
        }


def _call(run: Callable[..., Any], inputs: Mapping[str, torch.Tensor]) -> Callable[[], Any]:
    return lambda: run(**inputs)


def error_of(found: Any, wanted: Any) -> float:
    """The largest difference of two results of a model, in multiples of what is allowed."""
    worst = 0.0
    for a, b in zip(_tensors(found), _tensors(wanted), strict=True):
        allowed = 1e-5 * b.abs().max() + 1e-4 * b.abs()
        worst = max(worst, float(((a - b).abs() / allowed.clamp_min(1e-30)).max()))
    return worst


def _tensors(found: Any) -> list[torch.Tensor]:
    values = found.to_tuple() if hasattr(found, "to_tuple") else found
    leaves = torch.utils._pytree.tree_leaves(values)
    return [x for x in leaves if isinstance(x, torch.Tensor)]


CHILDREN: dict[str, Callable[[str, float], Row]] = {
    "first": lambda name, seconds: first_call(name, OWN),
    "first_of_peer": lambda name, seconds: first_call(name, PEER),
    "speed": speed,
}
HEADINGS = (
    f"{'model':13}{'cuvil ms':>10}{'inductor':>10}{'eager':>10}{'x inductor':>11}{'x eager':>9}"
    f"{'cold s':>8}{'inductor':>9}{'warm s':>8}{'whole':>7}{'error':>7}  in"
)


def line(row: Row) -> str:
    """A row of the table."""
    if "problem" in row:
        return f"{row['name']:13} {row['problem'][:150]}"
    times = "".join(f"{row[f'{n}_ms']:10.3f}" for n in (OWN, PEER, EAGER))
    graphs = f"{row['graphs']} graph{'s' if row['graphs'] > 1 else ''}"
    return (
        f"{row['name']:13}{times}{row['x_inductor']:10.2f}x{row['x_eager']:8.2f}x"
        f"{row['cold']['compile_s']:8.1f}{row['peer_cold']['compile_s']:9.1f}"
        f"{row['warm']['compile_s']:8.2f}{row['warm']['first_s']:7.2f}{row['error']:7.2f}"
        f"  {graphs}{'' if row['native'] else ', not all compiled'}"
    )


def measured(rows: Sequence[Row]) -> list[Row]:
    """The rows of models that could be measured."""
    return [r for r in rows if "problem" not in r and r["name"] != TINY]


def means(rows: Sequence[Row]) -> Row:
    """Geometric means over the models that were measured."""
    good = measured(rows)
    columns = {
        "mean_x_inductor": [r["x_inductor"] for r in good],
        "mean_x_eager": [r["x_eager"] for r in good],
        "mean_cold_x_inductor": [
            r["peer_cold"]["compile_s"] / r["cold"]["compile_s"] for r in good
        ],
    }
    return {key: math.exp(sum(map(math.log, c)) / len(c)) for key, c in columns.items() if c}


def summary(rows: Sequence[Row]) -> list[str]:
    """The means in words, and what a call costs."""
    found = means(rows)
    lines = []
    warm = [r["warm"]["compile_s"] for r in measured(rows)]
    if found:
        lines.append(
            f"geometric mean: {found['mean_x_inductor']:.2f}x inductor, "
            f"{found['mean_x_eager']:.2f}x eager"
        )
        lines.append(
            f"the compilers alone, geometric mean: cold 1/{found['mean_cold_x_inductor']:.1f} of "
            f"inductor's time; warm at most {max(warm):.2f} s"
        )
    for row in rows:
        if row["name"] == TINY and "problem" not in row:
            over = (row["cuvil_ms"] - row["inductor_ms"]) * 1e3
            lines.append(
                f"a call of a tiny module: {row['cuvil_ms'] * 1e3:.1f} us, inductor's "
                f"{row['inductor_ms'] * 1e3:.1f} us: {over:+.1f} us"
            )
    return lines


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.torch_compile", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--seconds", type=float, default=6.0, help="of timing for each, about")
    parser.add_argument("--child", choices=sorted(CHILDREN), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
