"""The zoo's models on emulated machines: compiled once, called from C on each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

import cuvil
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.conformance.c_program import Caller, caller
from tools.foreign import Machine
from tools.models import trials, zoo
from tools.models.c_program import CProgramError
from tools.models.case import ModelCase, Tolerance, ZooError
from tools.models.compiled import Made, compile_file
from tools.models.judge import OnnxRuntime, bound_ratio
from tools.models.trials import Trial

Arrays = Mapping[str, np.ndarray]
HEADINGS = f"{'model':20} {'cpu':22} {'build':12} {'code':>9} {'weights':>11} inputs {'bound':>7}"


@dataclass
class EmulatedReport:
    """What was found about a model on a machine. variant: the build that ran. inputs: how many it
    was run on. bound: the largest error against ONNX Runtime in multiples of what is allowed."""

    name: str
    machine: Machine
    variant: str = ""
    code_bytes: int = 0
    weights_bytes: int = 0
    inputs: int = 0
    bound: float = 0.0
    problems: list[str] = field(default_factory=list)

    def line(self) -> str:
        """A row below HEADINGS."""
        cpu = self.machine.cpu or self.machine.triple
        head = f"{self.name:20} {cpu:22} {self.variant:12} {self.code_bytes:9}"
        verdict = "FAIL" if self.problems else "ok"
        return f"{head} {self.weights_bytes:11} {self.inputs:6} {self.bound:7.3f}  {verdict}"


def verify(
    names: Sequence[str], machines: Sequence[Machine], variant: str = "", count: int = 3
) -> Iterator[EmulatedReport]:
    """A report for each model on each machine, all of one triple. variant: compiled alone; "": all
    that the triple has. count: of inputs for a model. Raises TargetError without an emulator."""
    programs = {machine: caller(Path(include_dir()), machine) for machine in machines}
    for name in names:
        reports = {machine: EmulatedReport(name, machine) for machine in machines}
        with tempfile.TemporaryDirectory(prefix="cuvil-verify-") as folder:
            try:
                case = zoo.get(name)
                options = Options(target=machines[0].triple, variant=variant)
                made, peer = compile_file(case, Path(folder), options), OnnxRuntime(case)
            except (cuvil.Error, ZooError) as error:
                for report in reports.values():
                    report.problems.append(f"{type(error).__name__}: {error}")
                    yield report
                continue
            for machine, report in reports.items():
                report.code_bytes, report.weights_bytes = made.code_bytes, made.weights_bytes
                for trial in islice(inputs(case), count):
                    got = _called(report, made, trial, programs[machine])
                    _compare(report, trial.label, got, peer.outputs(trial.inputs), case.tolerance)
                yield report


def _called(report: EmulatedReport, made: Made, trial: Trial, program: Caller) -> Arrays:
    """The outputs; none where there is a problem."""
    report.inputs += 1
    try:
        got = program.call(made.artefact, trial.inputs)
    except CProgramError as error:
        report.problems.append(f"{trial.label}: {error}")
        return {}
    report.variant = program.variant
    return got


def _compare(
    report: EmulatedReport, label: str, got: Arrays, ref: Arrays, tolerance: Tolerance
) -> None:
    for name in got:
        ratio = bound_ratio(got[name], ref[name], tolerance)
        report.bound = max(report.bound, ratio)
        if ratio > 1:
            report.problems.append(f"{label}: {name} differs, {ratio:.3g} times the bound")


def inputs(case: ModelCase) -> Iterator[Trial]:
    """Those that tell most first: random ones, the real ones, other sizes, more random ones."""
    first, *more = trials.usual(case)
    more.sort(key=lambda trial: not trial.label.startswith("real"))
    yield first
    yield from more[:1]
    yield from trials.other_sizes(case)
    yield from more[1:]
