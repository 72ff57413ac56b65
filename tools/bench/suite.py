"""One model of the fixed list: compiled, beside its peers, timed in turn in this process."""

from __future__ import annotations

import importlib
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import cuvil
from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.cli.bench_command import own_call
from cuvil.frontends.onnx import import_model
from cuvil.ir.record import tensor_type
from cuvil.ops import bind
from cuvil.options import Options
from cuvil.pipeline import identifier
from tools.bench import limits
from tools.bench.flops import model_flops
from tools.bench.judge import errors
from tools.bench.memory import peak_bytes
from tools.bench.peers import Call, PeerError, peer
from tools.bench.timing import Timing, interleaved, speedups
from tools.models import zoo
from tools.models.case import ModelCase
from tools.models.judge import TOLERANCES
from tools.models.sources import Exported, torch_net

LIST = Path(__file__).with_name("models.toml")
OWN = "cuvil"


@dataclass(frozen=True)
class Rules:
    """How to measure. seconds: about so long for each model; peers: engines to compare with;
    precision: of cuvil alone, peers have theirs in their names."""

    threads: int = 1
    seconds: float = 5.0
    peers: tuple[str, ...] = (
        "onnxruntime", "openvino", "openvino-bf16", "torch", "torch-inductor",
    )  # fmt: skip
    precision: str = "fp32"


@dataclass
class Timed:
    """One engine on one model. ready_ms: from the file to the first result; ratio: how many times
    as fast cuvil is, by rounds; error: see tools/bench/judge.py; peak_bytes: memory, see
    tools/bench/memory.py.
    """

    median_ms: float
    best_ms: float
    spread: float
    ready_ms: float
    settings: str
    ratio: float | None = None
    error: float | None = None
    peak_bytes: int = 0


@dataclass
class Row:
    """What was found about one model. skipped: engine -> why it did not run; problem: why not even
    cuvil did. peak_gflops: of this machine, measured in the same process.
    """

    name: str
    shapes: dict[str, list[int]] = field(default_factory=dict)
    engines: dict[str, Timed] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    gflop: float = 0.0
    peak_gflops: float = 0.0
    compile_s: float = 0.0
    file_bytes: int = 0
    weights_bytes: int = 0
    problem: str = ""

    def share(self, peak_gflops: float) -> float:
        """Cuvil's rate of arithmetic over the most that the machine can do, given by the caller."""
        return self.gflop / (self.engines[OWN].median_ms * 1e-3) / peak_gflops

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        engines = {name: Timed(**timed) for name, timed in data["engines"].items()}
        return cls(**{**data, "engines": engines})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def fixed_list(kind: str) -> list[str]:
    """Names of zoo rows, in order. kind: "speed" or "dynamic"."""
    names: list[str] = tomllib.loads(LIST.read_text(encoding="utf-8"))[kind]
    return names


def measure_speed(name: str, rules: Rules) -> Row:
    """Times a zoo model on cuvil and the peers that there are. Raises ZooError and cuvil.Error."""
    case = zoo.get(name)
    inputs = case.inputs(0)
    row = Row(name, {key: list(array.shape) for key, array in inputs.items()})
    row.gflop = model_flops(case.path, inputs) / 1e9
    row.peak_gflops = limits.measure(rules.threads).flops / 1e9
    with tempfile.TemporaryDirectory(prefix="cuvil-bench-") as folder:
        calls, ready = _own(row, case, inputs, Path(folder), rules)
        for other in rules.peers:
            if peer(other).module == "torch" and not isinstance(zoo.row(name).source, Exported):
                continue  # no torch module made this file
            try:
                calls[other], ready[other] = _load_peer(other, name, case, inputs, rules.threads)
            except PeerError as error:
                row.skipped[other] = str(error)
        timings = interleaved({n: c.run for n, c in calls.items()}, budget_s=rules.seconds)
        tolerance = case.tolerance if rules.precision == "fp32" else TOLERANCES[rules.precision]
        _judge(row, calls, timings, ready, partial(errors, case, inputs, tolerance=tolerance))
        for engine, timed in row.engines.items():
            file = next(Path(folder).glob("*.so")) if engine == OWN else case.path
            timed.peak_bytes = peak_bytes(engine, name, rules.threads, file)
    return row


def measure_dynamic(name: str, rules: Rules) -> Row:
    """Times one model with its symbolic dims free and with them fixed, in turn."""
    case = zoo.get(name)
    inputs = case.inputs(0)
    row = Row(name, {key: list(array.shape) for key, array in inputs.items()})
    with tempfile.TemporaryDirectory(prefix="cuvil-bench-") as folder:
        calls, ready = _own(row, case, inputs, Path(folder, "free"), rules)
        options = Options(name=identifier("fixed_" + name), dims=_extents(case, inputs),
            precision=rules.precision)  # fmt: skip
        made = compile_to_folder(case.path, Path(folder, "fixed"), options)
        calls["fixed"], ready["fixed"] = _load(made, inputs, rules.threads)
        timings = interleaved({n: c.run for n, c in calls.items()}, budget_s=rules.seconds)
    tolerance = TOLERANCES[rules.precision]
    _judge(row, calls, timings, ready, partial(errors, case, inputs, tolerance=tolerance))
    return row


def _own(
    row: Row, case: ModelCase, inputs: Mapping[str, np.ndarray], folder: Path, rules: Rules
) -> tuple[dict[str, Call], dict[str, float]]:
    """Cuvil's call and its time to the first result, under its name; sizes go to the row."""
    started = time.perf_counter()
    options = Options(name=identifier("bench_" + case.name), precision=rules.precision)
    made = compile_to_folder(case.path, folder, options)
    row.compile_s = time.perf_counter() - started
    row.file_bytes = sum(
        path.stat().st_size for kind, path in made.files.items() if kind in ("so", "weights")
    )
    row.weights_bytes = made.manifest["weights_bytes"]
    call, ready = _load(made, inputs, rules.threads)
    return {OWN: call}, {OWN: ready}


def _load(made: Artefact, inputs: Mapping[str, np.ndarray], threads: int) -> tuple[Call, float]:
    started = time.perf_counter()
    engine = cuvil.load(made.files["so"], threads=threads)
    engine.run(None, inputs)
    ready = time.perf_counter() - started
    return own_call(engine, inputs), ready


def _load_peer(
    other: str, name: str, case: ModelCase, inputs: Mapping[str, np.ndarray], threads: int
) -> tuple[Call, float]:
    """The peer with the model, and its time to the first result without that of its import."""
    engine, source = peer(other), zoo.row(name).source
    net = None
    if engine.missing() is None:
        importlib.import_module(engine.module)
        if engine.module == "torch" and isinstance(source, Exported):
            net = partial(lambda module: module, torch_net(source.net))
    started = time.perf_counter()
    call = engine.load(case.path, inputs, threads, net)
    return call, time.perf_counter() - started


def _judge(
    row: Row,
    calls: Mapping[str, Call],
    timings: Mapping[str, Timing],
    ready: Mapping[str, float],
    errors_of: Callable[[Mapping[str, Sequence[np.ndarray]]], Mapping[str, float | None]],
) -> None:
    """Fills the row's engines."""
    found = errors_of({name: call.outputs() for name, call in calls.items()})
    ratios = speedups(timings, OWN)
    for name, timing in timings.items():
        row.engines[name] = Timed(
            median_ms=timing.median * 1e3,
            best_ms=timing.best * 1e3,
            spread=timing.spread,
            ready_ms=ready[name] * 1e3,
            settings=calls[name].settings,
            ratio=ratios.get(name),
            error=found[name],
        )


def _extents(case: ModelCase, inputs: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Symbol -> extent, from what the model's inputs are called and the shapes of the arrays."""
    graph = import_model(case.path)
    types = {n: tensor_type(v) for n, v in zip(graph.input_names, graph.inputs, strict=True)}
    return bind.bind_symbols(types, inputs)
