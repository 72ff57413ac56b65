"""What is known of kernels without the hardware: `python -m tools.bench.cross [BACKEND...]`.

Every row of the kernel table is compiled for every build of the backends that have a file
`bench.toml`, and the loop of its assembly that multiplies most is put before llvm-mca: how much of
the multiplications that a cpu can do per cycle it does, how many loads there are for each, and how
many instructions go to the stack. Exit status 1 where a contraction misses its goal, or spills.
Then what models of the zoo take: bytes of code and of the arena; and instructions per multiply-add
on emulated machines, beside OpenBLAS.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import cuvil.ops  # noqa: F401  registers the primitives
from cuvil.aot.write import compile_to_folder
from cuvil.codegen.kernel_table import CORE_ROWS, KernelCase
from cuvil.ir.build import Builder
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.options import Options
from cuvil.pipeline import compile_graph, workers
from cuvil.targets.backend import Backend, VariantSpec, variants_of
from cuvil.targets.registry import backends, find
from tools.bench.cross_counts import lines
from tools.bench.hot_loops import Loop, Syntax, loops, speed
from tools.foreign import Machine
from tools.models import zoo

ROOT = Path(__file__).resolve().parents[2]
_DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "u8": np.uint8,
    "i8": np.int8,
}
MODELS = ("silero-vad-ifless", "ocr-cls", "resnet18", "resnet18-u8s8")
_SUMS = {"f32": "f32", "f16": "f32", "bf16": "f32", "u8": "i32"}
_WHOLE_TILES = "64x256 256x64"
_PRODUCTS = (
    KernelCase("contract", ((64, 256), (256, 64)), {"spec": "ab,bc->ac"}, (1,)),
    KernelCase("contract", ((1, 256), (256, 64)), {"spec": "ab,bc->ac"}, (1,)),
)


@dataclass(frozen=True)
class Bench:
    """A backend's file: how its assembly reads, and per cpu the share of its multiplications that
    contractions are to reach, by dtype of the factors; none where it is only told. emulated: cpus
    of qemu's, on which instructions are counted."""

    triple: str
    syntax: Syntax
    cpus: Mapping[str, Mapping[str, float]]
    emulated: Sequence[str] = ("",)


@dataclass(frozen=True)
class Row:
    """One kernel of one build: its loop, and per cpu the share of what that could multiply."""

    variant: str
    kind: str
    what: str
    dtype: str
    loop: Loop
    shares: dict[str, float] = field(default_factory=dict)

    def line(self, cpus: Sequence[str]) -> str:
        loads = len(self.loop.loads) / len(self.loop.multiplies)
        cells = [f"{self.shares[cpu]:12.0%}" if cpu in self.shares else " " * 12 for cpu in cpus]
        counts = f"{len(self.loop.multiplies):5} {loads:6.2f} {len(self.loop.stack):6}"
        return f"{self.variant:10} {self.kind:10} {self.dtype:5} {self.what:24} {counts}" + "".join(
            cells
        )


def bench_files(names: Sequence[str] = ()) -> dict[str, Path]:
    """The files of the backends of these names, or of all."""
    files = {path.parent.name: path for path in sorted(ROOT.glob("backends/*/bench.toml"))}
    return {name: path for name, path in files.items() if not names or name in names}


def read(path: Path) -> Iterator[Bench]:
    """The benches of a backend's file, one for each triple."""
    for triple, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        others = {key: table.pop(key) for key in ("cpus", "emulated") if key in table}
        yield Bench(triple, Syntax(**table), **others)


Kernel = tuple[str, KernelCase, str]  # kind, case, dtype of the factors


def products(variant: VariantSpec) -> Iterator[Kernel]:
    """The matrix products that a build is for."""
    for dtype in sorted(variant.products) or ["f32"]:
        yield from (("contract", case, dtype) for case in _PRODUCTS)


def kernels(variant: VariantSpec) -> Iterator[Kernel]:
    """All that is to be compiled for a build: the last one has the rows of core's table that
    multiply."""
    if not variant.products:
        for row in CORE_ROWS:
            yield from ((row.kind, case, "f32") for case in row.cases if case.dtype == "f32")
    yield from products(variant)


def graph_of(case: KernelCase, dtype: str) -> Graph:
    """A graph of the one op, its operands of a dtype."""
    dtypes = [dtype, "i8" if dtype == "u8" else dtype, *[dtype] * len(case.operands)]
    free = [i for i in range(len(case.operands)) if i not in case.constants]
    kinds = {f"x{i}": TensorType.of(case.operands[i], dtypes[i]) for i in free}
    graph = new_graph("case", kinds, Pool())
    b = Builder(graph.block, graph.pool, "case")
    given = iter(graph.inputs)
    rng = np.random.default_rng(7)
    operands = [
        b.const(rng.integers(0, 9, shape).astype(_DTYPES[dtypes[i]]))
        if i in case.constants
        else next(given)
        for i, shape in enumerate(case.operands)
    ]
    attrs: dict[str, Any] = dict(case.attrs)
    if case.op in ("contract", "conv") and dtype != "f32":
        attrs["accumulate"] = _SUMS[dtype]
    return finish_graph(graph, {"y": b.emit(case.op, operands, **attrs)})


def hottest(bench: Bench, variant: VariantSpec, case: KernelCase, dtype: str) -> Loop:
    """The loop of a kernel's code that multiplies most."""
    options = Options(target=bench.triple, variant=variant.name)
    built = compile_graph(graph_of(case, dtype), options)
    units = [replace(u, emit="asm") for u in built.code.units if u.name.startswith(variant.name)]
    found = [
        loop for text in workers().compile(units) for loop in loops(text.decode(), bench.syntax)
    ]
    return max(found, key=lambda loop: len(loop.multiplies))


def rows(
    backend: Backend, bench: Bench, of: Callable[[VariantSpec], Iterator[Kernel]] = kernels
) -> Iterator[Row]:
    """Kernels of all builds of a triple, with the shares of the cpus that run them."""
    target = find(bench.triple)[1]
    builds = {c: {v.name for v in variants_of(backend, replace(target, cpu=c))} for c in bench.cpus}
    for variant in variants_of(backend, target):
        able = [cpu for cpu, names in builds.items() if variant.name in names]
        for kind, case, dtype in of(variant):
            loop = hottest(bench, variant, case, dtype)
            what = " ".join("x".join(map(str, shape)) for shape in case.operands[:2])
            facts = variant.facts
            shares = {c: speed(loop, facts.triple, c, facts.features).share for c in able}
            yield Row(variant.name, kind, what, dtype, loop, shares)


def missed(row: Row, bench: Bench) -> list[str]:
    """The goals that a row misses."""
    name = f"{row.variant} {row.kind} {row.dtype} {row.what}"
    if row.kind != "contract":
        return []
    found = [f"{name}: a spill: {row.loop.stack[0].strip()}"] if row.loop.stack else []
    if row.what != _WHOLE_TILES:
        return found
    goals = {cpu: bench.cpus[cpu].get(row.dtype, 0.0) for cpu in row.shares}
    found += [
        f"{name}: {row.shares[cpu]:.0%} on {cpu}, less than {goal:.0%}"
        for cpu, goal in goals.items()
        if row.shares[cpu] < goal
    ]
    return found


def sizes(triple: str, names: Sequence[str] = MODELS) -> Iterator[str]:
    """A line for each model: what it takes when it is compiled for the baseline."""
    for name in names:
        try:
            case = zoo.get(name)
        except zoo.ZooError:
            continue
        with tempfile.TemporaryDirectory(prefix="cuvil-cross-") as folder:
            data = compile_to_folder(case.path, folder, Options(target=triple)).manifest
        code, arena = sum(data["code_bytes"].values()), data["arena_bytes"]
        arena = arena if isinstance(arena, int) else "by shape"
        variants = ", ".join(variant["name"] for variant in data["variants"])
        yield f"{name:24} {code:10} {arena:>12}  {variants}"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="*", metavar="BACKEND")
    known = {backend.name: backend for backend in backends()}
    wrong = []
    for name, path in bench_files(parser.parse_args().backends).items():
        for bench in read(path):
            cpus = list(bench.cpus)
            heading = "build      kernel     dtype operands                   fmas  loads  stack"
            print(f"\n{bench.triple}\n{heading}" + "".join(f"{cpu:>12}" for cpu in cpus))
            for row in rows(known[name], bench):
                print(row.line(cpus), flush=True)
                wrong += missed(row, bench)
            print("\nmodel                    code bytes  arena bytes  builds")
            for text in sizes(bench.triple):
                print(text, flush=True)
            for cpu in bench.emulated:
                print()
                for text in lines(Machine(bench.triple, cpu)):
                    print(text, flush=True)
    print("\n".join(["", *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
