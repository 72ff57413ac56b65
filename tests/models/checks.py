"""What has to hold for every compiled model of the zoo."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import cuvil
from tools.models import c_program, trials, zoo
from tools.models.case import ModelCase, ZooError
from tools.models.compiled import Compiled
from tools.models.float64 import Exact
from tools.models.judge import Errors, OnnxRuntime, assert_accurate, assert_close

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class ZooModel:
    """A model and the library that it was compiled to."""

    case: ModelCase
    compiled: Compiled


def zoo_case(name: str) -> ModelCase:
    """The model, or a skip where it cannot be had."""
    try:
        return zoo.get(name)
    except ZooError as missing:
        pytest.skip(str(missing))


def check_agrees_with_onnxruntime(model: ZooModel) -> None:
    """Three seeds, a real input and other sizes, by one compile."""
    peer = OnnxRuntime(model.case)
    for trial in (*trials.usual(model.case), *trials.other_sizes(model.case)):
        got = model.compiled.outputs(trial.inputs)
        for name, ref in peer.outputs(trial.inputs).items():
            assert_close(f"{trial.label}: {name}", got[name], ref, model.case.tolerance)


def check_accurate(model: ZooModel) -> None:
    """The error against float64, by the measure of ONNX Runtime's, on three seeds and the real."""
    peer, exact = OnnxRuntime(model.case), Exact(model.case.path)
    errors: dict[str, Errors] = defaultdict(Errors)
    for trial in trials.usual(model.case):
        got, truth = model.compiled.outputs(trial.inputs), exact.outputs(trial.inputs)
        for name, ref in peer.outputs(trial.inputs).items():
            errors[name].add(got[name], ref, truth[name])
    for name, found in errors.items():
        assert_accurate(name, found)


def check_same_from_c(model: ZooModel, program: Path, folder: Path) -> None:
    """A C program that uses the same library computes the same bytes."""
    inputs = model.case.inputs(0)
    from_c = c_program.run(program, model.compiled.artefact, inputs, folder)
    got = model.compiled.outputs(inputs)
    assert list(from_c) == list(got)
    for name, value in got.items():
        assert from_c[name].dtype == value.dtype
        np.testing.assert_array_equal(from_c[name].view(np.uint8), value.view(np.uint8), name)


def check_same_on_two_threads(model: ZooModel) -> None:
    """How many threads share the work changes no byte."""
    inputs = model.case.inputs(0)
    with cuvil.load(model.compiled.library, threads=2) as engine:
        got = by_name(engine)(inputs)
    for name, value in model.compiled.outputs(inputs).items():
        np.testing.assert_array_equal(got[name].view(np.uint8), value.view(np.uint8), name)


def check_close_to_onnxruntime(case: ModelCase, run: Callable[[Arrays], Arrays]) -> None:
    """`run` gives what ONNX Runtime gives on the three seeds and the real input."""
    peer = OnnxRuntime(case)
    for trial in trials.usual(case):
        got = run(trial.inputs)
        for name, ref in peer.outputs(trial.inputs).items():
            assert_close(f"{trial.label}: {name}", got[name], ref, case.tolerance)


def check_fixed_sizes(case: ModelCase) -> None:
    """A dynamic model compiled in this process for the one size of the zoo's row."""
    spec = [(name, None, shape) for name, shape in case.shapes.items()]
    with cuvil.compile(case.path, input_spec=spec, threads=1, cache=False) as engine:
        assert all(isinstance(dim, int) for port in engine.get_inputs() for dim in port.dims)
        check_close_to_onnxruntime(case, by_name(engine))


def by_name(engine: cuvil.Engine) -> Callable[[Arrays], Arrays]:
    """The engine as a function from inputs to outputs by name."""
    names = [output.name for output in engine.get_outputs()]
    return lambda inputs: dict(zip(names, engine.run(None, inputs), strict=True))
