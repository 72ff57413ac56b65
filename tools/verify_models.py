"""`python -m tools.verify_models [MODEL...]`: compile the zoo and hold it to ONNX Runtime.

Each model is compiled to a library and run on three random inputs, a real one where it takes one,
and other sizes where it is dynamic; once more from C, where the bytes must be the same. Columns:
seconds of the compile, bytes of code and weights, the largest error against ONNX Runtime in
multiples of what is allowed (at most 1), and the largest error against a float64 evaluation in
multiples of ONNX Runtime's own (at most 4).

With a target of another machine's the libraries are called from C under qemu, on a few inputs,
without names those of the zoo that stand for an architecture:
`--target riscv64-linux-gnu --cpu 'rv64,v=true,vlen=128|256|512'` runs each on three machines.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import cuvil
from cuvil.targets.registry import find
from cuvil_runtime import include_dir
from tools import foreign
from tools.models import c_program, emulated, trials, zoo
from tools.models.case import ModelCase, ZooError
from tools.models.compiled import Compiled, Library
from tools.models.float64 import Exact
from tools.models.judge import ALLOWED_ERROR, Errors, OnnxRuntime, bound_ratio

HEADINGS = f"{'model':22} {'compile s':>9} {'code':>9} {'weights':>11} {'bound':>7} {'float64':>7}"


@dataclass
class Report:
    """What was found about one model; problems is empty when all is right.

    bound, float64: the ratios of the docstring above. c: whether C was tried.
    """

    name: str
    seconds: float = 0.0
    code_bytes: int = 0
    weights_bytes: int = 0
    variant: str = ""
    bound: float = 0.0
    float64: float = 0.0
    c: bool = False
    problems: list[str] = field(default_factory=list)

    def line(self) -> str:
        verdict = "FAIL" if self.problems else "ok" if self.c else "ok (no C compiler)"
        sizes = f"{self.code_bytes:9} {self.weights_bytes:11}"
        ratios = f"{self.bound:7.3f} {self.float64:7.2f}"
        return f"{self.name:22} {self.seconds:9.1f} {sizes} {ratios}  {verdict}"


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when every model is right, 1 otherwise."""
    options = _parser().parse_args(argv)
    machines = foreign.machines(find(options.target)[1].triple, options.cpu)
    reports = []
    found: Iterator[Report | emulated.EmulatedReport]
    if machines[0].is_here:
        names, headings = options.models or zoo.names(), HEADINGS
        found = verify(names, options.target, options.variant)
    else:
        names, headings = options.models or zoo.representatives(), emulated.HEADINGS
        found = emulated.verify(names, machines, options.variant or "", options.inputs)
    if not options.json:
        print(headings, flush=True)
    for report in found:
        reports.append(report)
        if not options.json:
            print("\n  ".join([report.line(), *report.problems]), flush=True)
    failed = [report.name for report in reports if report.problems]
    if options.json:
        print(json.dumps([asdict(report) for report in reports], indent=2))
    else:
        print(f"{len(reports) - len(failed)} of {len(reports)} ok")
    return 1 if failed else 0


def verify(names: list[str], target: str = "cpu", variant: str | None = None) -> Iterator[Report]:
    """Reports on the models in turn; rows in a row that share a file are compiled once."""
    with tempfile.TemporaryDirectory(prefix="cuvil-verify-") as scratch:
        program = _program(Path(scratch))
        library = Library(Path(scratch, "library"), target, variant)
        for name in names:
            report = Report(name)
            try:
                case = zoo.get(name)
                _judge(report, case, library.of(case), program)
            except (cuvil.Error, ZooError, c_program.CProgramError) as error:
                report.problems.append(f"{type(error).__name__}: {error}")
            yield report
        library.clear()


def _judge(report: Report, case: ModelCase, compiled: Compiled, program: Path | None) -> None:
    report.seconds, report.code_bytes = compiled.seconds, compiled.code_bytes
    report.weights_bytes = compiled.weights_bytes
    report.variant = compiled.engine.model.variant
    peer, exact = OnnxRuntime(case), Exact(case.path)
    errors: dict[str, Errors] = defaultdict(Errors)
    for trial in trials.usual(case):
        got, ref = compiled.outputs(trial.inputs), peer.outputs(trial.inputs)
        _compare(report, trial.label, got, ref)
        for output, truth in exact.outputs(trial.inputs).items():
            errors[output].add(got[output], ref[output], truth)
    for trial in trials.other_sizes(case):
        _compare(report, trial.label, compiled.outputs(trial.inputs), peer.outputs(trial.inputs))
    for output, found in errors.items():
        _measure(report, output, found)
    if program:
        report.c = True
        _compare_c(report, case, compiled, program)


def _compare(
    report: Report, label: str, got: dict[str, np.ndarray], ref: dict[str, np.ndarray]
) -> None:
    for output, value in ref.items():
        ratio = bound_ratio(got[output], value)
        report.bound = max(report.bound, ratio)
        if ratio > 1:
            report.problems.append(f"{label}: {output} differs, {ratio:.3g} times the bound")


def _measure(report: Report, output: str, errors: Errors) -> None:
    report.float64 = max(report.float64, errors.ratio)
    if errors.ratio > ALLOWED_ERROR:
        report.problems.append(
            f"{output} is {errors.ratio:.3g} times as far from float64 as ONNX Runtime's"
        )


def _compare_c(report: Report, case: ModelCase, compiled: Compiled, program: Path) -> None:
    inputs = case.inputs(0)
    got = compiled.outputs(inputs)
    with tempfile.TemporaryDirectory(prefix="cuvil-verify-") as folder:
        from_c = c_program.run(program, compiled.artefact, inputs, Path(folder))
    for output, value in got.items():
        if value.tobytes() != from_c[output].tobytes():
            report.problems.append(f"{output} differs between Python and C")


def _program(folder: Path) -> Path | None:
    return c_program.build(Path(include_dir()), folder) if c_program.c_compiler() else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.verify_models", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a zoo model; all without one")
    parser.add_argument("--target", default="cpu", help="what to compile for (default: this cpu)")
    parser.add_argument("--cpu", default="", help="emulated cpu, as qemu calls it")
    parser.add_argument("--inputs", type=int, default=3, help="how many, where that is emulated")
    parser.add_argument("--variant", help="which variant of the library to run")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
