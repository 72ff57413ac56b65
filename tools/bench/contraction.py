"""GFLOP/s of the contraction generator on one core, and the share of the core's measured peak.

    python -m tools.bench.contraction [--target 16|8|4] [--only WORDS] [--dynamic]

Every row runs one kernel with a bias and relu epilogue on warm data; weights larger than the
caches stream from memory, as they do inside a model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from cuvil.codegen.contraction import (
    ContractionSpec,
    EpilogueScope,
    KDim,
    RowDim,
    Slot,
    emit_contraction,
    merge_rows,
    scratch_bytes,
    task_count,
)
from cuvil.codegen.contraction.harness import HostKernel, aligned, new_module
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import F32, I32, KERNEL_TYPE, fma, repeat, store, vector, zero

_SECONDS = 0.25
_PANEL = 32


@dataclass(frozen=True)
class Shape:
    """One row of the table; flops counts a multiply-add as two."""

    name: str
    spec: ContractionSpec
    flops: int
    a_size: int
    c_size: int
    dims: tuple[int, ...] = ()


def facts_for(lanes: int) -> TargetFacts:
    """The host with vectors of 16, 8 or 4 floats (which must be no more than it has)."""
    triple = llvm.get_process_triple()
    if lanes == 4:
        return TargetFacts(triple=triple)
    narrow = TargetFacts(triple, features="+avx2,+fma", vector_bits=256, fma=True, l2_bytes=1 << 20)
    if lanes == 8:
        return narrow
    host = llvm.get_host_cpu_features().flatten()
    wide = replace(narrow, cpu=llvm.get_host_cpu_name(), features=host, vector_bits=512)
    return replace(wide, vector_registers=32, l1_bytes=48 * 1024, l1_ways=12)


def gemm(m: int, n: int, k: int, dynamic: bool = False) -> Shape:
    """C[m, n] = A[m, k] @ B[k, n]; dynamic: m is known at run time only."""
    rows = (RowDim(Slot(0) if dynamic else m, k, n),)
    spec = ContractionSpec((), rows, (KDim(k, 1),), n, _PANEL)
    return Shape(f"gemm {m}x{n}x{k}", spec, 2 * m * n * k, m * k, m * n, (m,))


def conv(size: int, c: int, n: int, kernel: int, stride: int = 1, dynamic: bool = False) -> Shape:
    """A square NHWC convolution of an input that is size*stride wide before padding."""
    padded = size * stride + kernel - 1
    pitch = padded * c
    extents = (Slot(0), Slot(1)) if dynamic else (size, size)
    rows = (RowDim(extents[0], stride * pitch, size * n), RowDim(extents[1], stride * c, n))
    spec = ContractionSpec(
        (),
        merge_rows(rows),
        (KDim(kernel, pitch), KDim(kernel, c), KDim(c, 1)),
        n,
        _PANEL,
    )
    name = f"conv {kernel}x{kernel}/{stride} {size}x{size} {c}->{n}"
    flops = 2 * size * size * n * kernel * kernel * c
    return Shape(name, spec, flops, padded * pitch, size * size * n, (size, size))


def shapes(dynamic: bool) -> Iterator[Shape]:
    """BERT-base and -large layers, ResNet convolutions, one row."""
    for m, n, k in ((128, 768, 768), (128, 3072, 768), (128, 768, 3072)):
        yield gemm(m, n, k, dynamic)
    for m, n, k in ((128, 1024, 1024), (128, 4096, 1024), (128, 1024, 4096), (384, 768, 768)):
        yield gemm(m, n, k, dynamic)
    yield conv(112, 3, 64, 7, 2, dynamic)
    for size, c in ((56, 64), (28, 128), (14, 256), (7, 512)):
        yield conv(size, c, c, 3, 1, dynamic)
        yield conv(size, c, 4 * c, 1, 1, dynamic)
        yield conv(size, 4 * c, c, 1, 1, dynamic)
    for size, c in ((28, 128), (14, 256), (7, 512)):
        yield conv(size, c, c, 3, 2, dynamic)
        yield conv(size, 2 * c, 4 * c, 1, 2, dynamic)
    for size, c in ((80, 32), (40, 64), (20, 128), (10, 256)):
        yield conv(size, c, c, 3, 1, dynamic)
    for m, n, k in ((1, 768, 768), (1, 3072, 768), (1, 1000, 2048), (1, 8192, 4096), (4, 768, 768)):
        yield gemm(m, n, k, dynamic)


def bias_relu(e: EpilogueScope, acc: ir.Value) -> ir.Value:
    """max(acc + bias[col], 0), with buffer 3 as the bias."""
    total = e.builder.fadd(acc, e.load(3, "f32", e.col))
    nothing = zero(total.type)
    return e.builder.select(e.builder.fcmp_ordered(">", total, nothing), total, nothing)


def measure(shape: Shape, facts: TargetFacts) -> tuple[float, float, int]:
    """(seconds per run, seconds to compile, tasks) of one shape."""
    module = new_module(facts)
    started = time.perf_counter()
    emit_contraction(module, "kernel", shape.spec, facts, bias_relu)
    kernel = HostKernel(module, "kernel", facts)
    compiled = time.perf_counter() - started
    k = int(np.prod([dim.extent for dim in shape.spec.k]))
    random = np.random.default_rng(0)
    panels = -(-shape.spec.n // _PANEL)
    sizes = [shape.a_size, panels * k * _PANEL, shape.c_size, shape.spec.n]
    buffers = [aligned(size) for size in sizes]
    for buffer in buffers:
        buffer[:] = random.standard_normal(buffer.size, np.float32)
    tasks = task_count(shape.spec, facts, shape.dims)
    run = kernel.bind(buffers, shape.dims, scratch_bytes(shape.spec, facts))
    return best_time(lambda: run(0, tasks)), compiled, tasks


def best_time(call: Callable[[], None]) -> float:
    """Seconds of the fastest of many calls."""
    best, stop = float("inf"), time.perf_counter() + _SECONDS
    while (started := time.perf_counter()) < stop:
        call()
        best = min(best, time.perf_counter() - started)
    return best


def peak(facts: TargetFacts) -> float:
    """GFLOP/s of independent multiply-adds that never touch memory."""
    rounds, chains = 2_000_000, 12
    module = new_module(facts)
    function = ir.Function(module, KERNEL_TYPE, "peak")
    b = ir.IRBuilder(function.append_basic_block())
    kind = vector(F32, facts.lanes("f32"))
    factor = b.load(function.args[4], typ=kind, align=4)

    def trip(_: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        return [fma(b, factor, factor, x, facts.fma) for x in sums]

    # Without fma this is one product and one sum a trip, and LLVM keeps the product out of the
    # loop: the figure is the rate of sums alone.
    sums = repeat(b, function.args[3], [zero(kind)] * chains, trip)
    for i, value in enumerate(sums):
        store(b, value, function.args[4], ir.Constant(ir.IntType(64), i * kind.count))
    b.ret(ir.Constant(I32, 0))
    kernel, memory = HostKernel(module, "peak", facts), aligned(1024)
    seconds = best_time(lambda: kernel.function(None, None, 0, rounds, memory.ctypes.data))
    return 2e-9 * rounds * chains * kind.count / seconds


def main() -> None:
    """Prints one line per shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=int, choices=(4, 8, 16), default=16)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--dynamic", action="store_true", help="row extents at run time")
    options = parser.parse_args()
    facts = facts_for(options.target)
    limit = peak(facts)
    print(f"peak {limit:.1f} GFLOP/s with {options.target} lanes")
    for shape in shapes(options.dynamic):
        if options.only not in shape.name:
            continue
        seconds, compiled, tasks = measure(shape, facts)
        rate = shape.flops / seconds / 1e9
        print(
            f"{shape.name:28s} {rate:6.1f} GFLOP/s {100 * rate / limit:4.0f}% "
            f"{seconds * 1e6:8.1f} us {tasks:4d} tasks, compiled in {compiled * 1e3:.0f} ms"
        )


if __name__ == "__main__":
    main()
