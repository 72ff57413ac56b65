"""Models of one kernel, to be timed: the kernel as it is in its model, on memory of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cuvil.codegen.build import Code, VariantTarget, build_code
from cuvil.codegen.elf_merge import merge_objects
from cuvil.ir import host, nest
from cuvil.ir import host_build as make
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.dtypes import DType
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.ir.types import BufferType, TensorType
from cuvil.pipeline import Setting, workers
from cuvil.plan.plan import Plan, Port, make_plan
from cuvil.plan.templates import Templates, question
from cuvil.tune.extents import Sample, sample_of, size_at, zeros_at
from cuvil_runtime import Model, default_threads, load_object

Array = np.ndarray[Any, Any]
ALIGN = 64
STREAMED = 24 << 20  # bytes over which launches take turns: weights come from memory as in a model
MOST_TURNS = 16
_ONES = {"bf16": (np.uint16, 0x3F80), "f16": (np.uint16, 0x3C00)}


@dataclass(frozen=True)
class Trial:
    """A kernel and the bytes of each buffer that its launch hands it. sample: the extents of the
    model's symbols that it is launched with."""

    kernel: nest.KernelOp
    sizes: tuple[int, ...]
    sample: tuple[tuple[str, int], ...] = ()

    @property
    def dtypes(self) -> list[DType]:
        """Of the buffers; the kernel's last argument is the task."""
        kinds = [a.type for a in self.kernel.body.block.args][: len(self.sizes)]
        return [k.dtype for k in kinds if isinstance(k, BufferType)]

    @property
    def bytes(self) -> int:
        return sum(-(-size // ALIGN) * ALIGN for size in self.sizes)

    @property
    def turns(self) -> int:
        """How many sets of buffers the launches go over."""
        return max(1, min(MOST_TURNS, STREAMED // max(1, self.bytes)))


def trials_of(plan: Plan) -> dict[str, tuple[Trial, int]]:
    """The host's kernels whose buffers have known sizes, or sizes at the sample of the symbols,
    with how often they are launched."""
    found: dict[str, tuple[Trial, int]] = {}
    sample = sample_of(plan)
    for op in _walk(plan.program.body.block):
        if not isinstance(op, host.LaunchOp) or op.kernel.data not in plan.kernels:
            continue
        name, sizes = op.kernel.data, [_size(v, plan, sample) for v in op.buffers]
        known = tuple(s for s in sizes if s is not None)
        if len(known) == len(sizes):
            trial = Trial(plan.kernels[name], known, tuple(sample.items()))
            found[name] = (trial, found.get(name, (0, 0))[1] + 1)
    return found


def _walk(block: Block) -> Iterator[Operation]:
    for op in block.ops:
        yield op
        for region in op.regions:
            for inner in region.blocks:
                yield from _walk(inner)


def _size(value: Value, plan: Plan, sample: Sample) -> int | None:
    op = value.owner
    if isinstance(op, host.ArgumentOp):
        ports = [*plan.inputs, *plan.outputs]
        kind = ports[op.index.value.data].type
        return size_at(kind.size * kind.dtype.size, sample)
    if isinstance(op, host.WeightOp):
        return plan.pool.get(op.key.data).nbytes
    if isinstance(op, host.AllocOp):
        return size_at(op.bytes.data[0], sample)
    if isinstance(op, host.ViewOp):
        whole, offset = _size(op.source, plan, sample), size_at(op.offset.data[0], sample)
        return whole - offset if whole is not None and offset is not None else None
    return None


def trial_of_op(op: Operation, templates: Templates, way: str) -> Trial | None:
    """An op alone, computed in one of `templates.ways`; operands but the first are constants."""
    kinds = [tensor_type(v) for v in op.operands]
    graph = new_graph("trial", {"x": kinds[0]}, Pool())
    b = Builder(graph.block, graph.pool, "trial")
    shapes = [tuple(d for d in k.dims if isinstance(d, int)) for k in kinds[1:]]
    constants = [b.const(np.ones(shape, np.float32)) for shape in shapes]
    result = b.emit(
        op.name.removeprefix("cuvil."), [graph.inputs[0], *constants], **vars(attrs_of(op))
    )
    finish_graph(graph, {"y": result})
    forced = Templates(templates.templates, {question(op): way})
    found = list(trials_of(make_plan(graph, templates=forced)).values())
    return found[0][0] if len(found) == 1 else None


def load_trials(
    trials: Mapping[str, tuple[Trial, Sequence[int]]], setting: Setting
) -> dict[int, dict[str, Callable[[], object]]]:
    """By the number of threads, one and all: a call for each trial, cut as its numbers say, that
    launches it once for each turn. All are compiled together. Raises CompileError."""
    codes = {}
    for name, (trial, choice) in trials.items():
        cut = {trial.kernel.sym_name.data: choice} if choice else {}
        codes[name] = plan_code(_plan(trial), cut, setting)
    made = iter(workers().compile([unit for code in codes.values() for unit in code.units]))
    parts = {name: [next(made) for _ in code.units] for name, code in codes.items()}
    filled = {(t.sizes, t.turns): t for t, _ in trials.values()}
    memory = {key: _memory(trial) for key, trial in filled.items()}
    return {
        threads: {
            name: _caller(load_code(codes[name], parts[name], threads),
                          memory[trial.sizes, trial.turns], trial)
            for name, (trial, _) in trials.items()
        }
        for threads in sorted({1, default_threads()})
    }  # fmt: skip


def _caller(model: Model, memory: Array, trial: Trial) -> Callable[[], object]:
    given, out = [memory, *zeros_at(_ports(trial), dict(trial.sample))], [np.zeros(1, np.uint8)]
    return lambda: model.run(given, out)


def _plan(trial: Trial) -> Plan:
    """A program that launches the kernel on each set of buffers in one input's memory."""
    block, at = Block(), 0
    block.add_op(memory := make.argument(0))
    name = trial.kernel.sym_name.data
    for _ in range(trial.turns):
        views = []
        for size in trial.sizes:
            views.append(make.view(memory.results[0], at))
            block.add_op(views[-1])
            at += -(-size // ALIGN) * ALIGN
        tasks = trial.kernel.tasks.data[0]
        block.add_op(make.launch(name, [v.results[0] for v in views], tasks, 0))
    u8 = TensorType.of((at,), "u8")
    names = tuple(name for name, _ in trial.sample)
    return Plan(
        "trial", make.program("trial", 0, block), {name: trial.kernel}, Pool(), [], 0,
        [f"{name}\t"], [Port("memory", u8), *_ports(trial)],
        [Port("done", TensorType.of((1,), "u8"))], names, [(0, None) for _ in names], 0,
    )  # fmt: skip


def _ports(trial: Trial) -> list[Port]:
    """Inputs that bind the symbols."""
    return [
        Port(f"extent{i}", TensorType.of((symbol(name),), "u8"))
        for i, (name, _) in enumerate(trial.sample)
    ]


def plan_code(plan: Plan, choices: Mapping[str, Sequence[int]], setting: Setting) -> Code:
    """The code of a plan for the build that is tuned. choices: kernel -> how it is cut."""
    variant = VariantTarget(setting.variant.name, 0, setting.variant.facts, choices)
    return build_code(
        plan, [variant], producer="tune", opt=setting.opt_level, bitcode=setting.bitcode,
        table=setting.rows,
    )  # fmt: skip


def load_code(
    code: Code, objects: Sequence[bytes], threads: int, weights: str | None = None
) -> Model:
    """The model of compiled units. weights: the file of them."""
    with tempfile.TemporaryDirectory(prefix="cuvil-tune-") as scratch:
        path = Path(scratch, "trial.o")
        merge_objects(path, objects, {code.symbol}.__contains__, code.renamed)
        return load_object(path.read_bytes(), threads=threads, weights=weights)


def _memory(trial: Trial) -> Array:
    """The sets of buffers: plausible floats, zeros where numbers may be indices."""
    places = [-(-size // ALIGN) * ALIGN for size in trial.sizes] * trial.turns
    raw = np.zeros(sum(places) + ALIGN, np.uint8)
    memory = raw[-raw.ctypes.data % ALIGN :][: sum(places)]
    memory.fill(0)  # pages of its own: untouched ones are all the same page
    at = 0
    for i, place in enumerate(places):
        _fill(memory[at : at + place], trial.dtypes[i % len(trial.sizes)])
        at += place
    return memory


def _fill(part: Array, dtype: DType) -> None:
    if dtype.name in _ONES:
        kind, one = _ONES[dtype.name]
        part.view(kind).fill(one)
    elif dtype.name in ("f32", "f64"):
        view = part.view(np.float32 if dtype.name == "f32" else np.float64)
        view[:] = np.linspace(-1.0, 1.0, prod(view.shape), dtype=view.dtype)
