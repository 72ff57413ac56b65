"""Time per element of the vectorised loops, beside the same functions of an earlier commit.

Both are compiled here and timed in turn in one process, so that what slows the machine slows both.
"""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request, array_module
from tools.numerics.builds import builds

__all__ = ["compare"]

_ROOT = Path(__file__).parents[2]
_SIZE, _ROUNDS, _CALLS = 1 << 14, 40, 4
_EMIT = """
import json, sys
import cuvil.ops
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.scalars.array_functions import Request, array_module
names, facts = json.load(sys.stdin)
known = {k: v for k, v in facts.items() if k in TargetFacts.__dataclass_fields__}
print(array_module([Request(name, "f32") for name in names], TargetFacts(**known)))
"""


def compare(names: Sequence[str], before: str = "") -> str:
    """A table: nanoseconds for an element in each build, and `after / before` where `before` is a
    commit that has all of the names. Raises CalledProcessError for one that has not."""
    requests = [Request(name, "f32") for name in names]
    head = f"{'function':<18}" + "".join(f"{b.name:>22}" for b in builds())
    columns = []
    for build in builds():
        texts = [str(array_module(requests, build.facts))]
        if before:
            texts.append(_earlier(names, build.facts, before))
        functions = [_compiled(text, requests, build.facts) for text in texts]
        columns.append([_cell(_least(functions, r)) for r in requests])
    rows = [
        f"{r.name:<18}" + "".join(f"{cell:>22}" for cell in cells)
        for r, *cells in zip(requests, *columns, strict=True)
    ]
    return "\n".join([head, *rows])


def _earlier(names: Sequence[str], facts: TargetFacts, commit: str) -> str:
    """The module as the commit's own emitters write it, beside the runtime of now."""
    packed = subprocess.run(
        ["git", "archive", commit, "core"],
        cwd=_ROOT,
        check=True,
        capture_output=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        path = os.pathsep.join([f"{folder}/core", *sys.path])
        made = subprocess.run(
            [sys.executable, "-c", _EMIT],
            input=json.dumps([list(names), asdict(facts)]),
            env={**os.environ, "PYTHONPATH": path},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return made.stdout


def _compiled(text: str, requests: Sequence[Request], facts: TargetFacts) -> ArrayFunctions:
    width = f'"prefer-vector-width"="{facts.prefer_vector_width}"'
    if facts.prefer_vector_width and width not in text:
        text = text.replace('"no-builtins"', f'"no-builtins" {width}')
    symbols = [r.symbol for r in requests]
    return ArrayFunctions.from_text(text, symbols, facts.cpu, facts.features, level=3)


def _least(functions: Sequence[ArrayFunctions], request: Request) -> list[float]:
    """Nanoseconds for an element with each, the least of rounds in turn."""
    x = np.linspace(-3, 3, _SIZE, dtype=np.float32)
    out = np.empty_like(x)
    best = [math.inf] * len(functions)
    for _ in range(_ROUNDS):
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            for _ in range(_CALLS):
                function(request, x, out=out)
            best[i] = min(best[i], time.perf_counter() - begin)
    return [seconds / _CALLS / _SIZE * 1e9 for seconds in best]


def _cell(times: Sequence[float]) -> str:
    after, *before = (f"{t:.3f}" for t in times)
    return f"{after} / {before[0]} {times[0] / times[1]:.2f}x" if before else after
