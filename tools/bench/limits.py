"""What the machine can do at most: multiply-adds and bytes read per second, measured.

The kernels are written as LLVM IR for the host's own vector width, so that no compiler's choices
come between: independent chains of FMA, and a sum over a buffer that is larger
than the caches.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np

CHAINS = 12
"""Independent accumulators: two FMA units of latency 4 to 6 stay busy."""

ROUNDS = 2_000_000
BUFFER_BYTES = 192 << 20


@dataclass(frozen=True)
class Limits:
    """Peak rates of the host with a given number of threads."""

    threads: int
    flops: float
    bytes_per_second: float

    def fraction_of_peak(self, flops: float, seconds: float) -> float:
        """Share of the arithmetic peak that `flops` operations in `seconds` reach."""
        return flops / seconds / self.flops


def measure(threads: int = 1, attempts: int = 3) -> Limits:
    """Best of a few short runs, about half a second in all; float32, two operations per FMA."""
    lanes = vector_lanes()
    kernels = _Kernels(lanes)
    operations = 2 * lanes * CHAINS * ROUNDS * threads
    words = BUFFER_BYTES // 4 // threads // (lanes * CHAINS) * (lanes * CHAINS)
    buffers = [np.ones(words, np.float32) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        multiply = min(_timed(pool, kernels.multiply, [ROUNDS] * threads) for _ in range(attempts))
        jobs = [(buffer.ctypes.data, words // (lanes * CHAINS)) for buffer in buffers]
        read = min(_timed(pool, lambda job: kernels.read(*job), jobs) for _ in range(attempts))
    return Limits(threads, operations / multiply, words * 4 * threads / read)


def vector_lanes() -> int:
    """float32 lanes of the host's widest vectors, as LLVM sees its features."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 16
    return 8 if features.get("avx") else 4


def _timed(pool: ThreadPoolExecutor, work: Callable[[Any], float], jobs: list[Any]) -> float:
    """Seconds until the slowest of all jobs, one thread each, is done; ctypes frees the GIL."""
    start = time.perf_counter()
    list(pool.map(work, jobs))
    return time.perf_counter() - start


class _Kernels:
    """The two kernels, compiled for the host; they live as long as this object."""

    def __init__(self, lanes: int) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=2,
            jit=True,
        )
        module = llvm.parse_assembly(_multiply_ir(lanes) + _read_ir(lanes))
        self._engine = llvm.create_mcjit_compiler(module, target)
        self._engine.finalize_object()
        result, count, pointer = ctypes.c_float, ctypes.c_int64, ctypes.c_void_p
        self.multiply = ctypes.CFUNCTYPE(result, count)(self._address("multiply"))
        self.read = ctypes.CFUNCTYPE(result, pointer, count)(self._address("read"))

    def _address(self, name: str) -> int:
        return self._engine.get_function_address(name)


def _multiply_ir(lanes: int) -> str:
    """`float multiply(i64 rounds)`: CHAINS vector FMAs a round."""
    vector = f"<{lanes} x float>"
    name = f"llvm.fma.v{lanes}f32"
    half = "splat (float 5.000000e-01)"
    steps = [
        f"%new{k} = call {vector} @{name}({vector} %acc{k}, {vector} {half}, {vector} {half})"
        for k in range(CHAINS)
    ]
    declaration = f"declare {vector} @{name}({vector}, {vector}, {vector})\n"
    return declaration + _loop("multiply", "i64 %rounds", vector, steps)


def _read_ir(lanes: int) -> str:
    """`float read(ptr buffer, i64 rounds)`: CHAINS vectors read and added a round."""
    vector = f"<{lanes} x float>"
    steps = []
    for k in range(CHAINS):
        steps += [
            f"%word{k} = add i64 %base, {k * lanes}",
            f"%place{k} = getelementptr float, ptr %buffer, i64 %word{k}",
            f"%value{k} = load {vector}, ptr %place{k}, align 4",
            f"%new{k} = fadd {vector} %acc{k}, %value{k}",
        ]
    base = f"%base = mul i64 %round, {lanes * CHAINS}"
    return _loop("read", "ptr %buffer, i64 %rounds", vector, [base, *steps])


def _loop(name: str, parameters: str, vector: str, steps: list[str]) -> str:
    """A counted loop over the steps, which turn %acc0.. into %new0..; returns a sum of all."""
    entry = [
        f"%acc{k} = phi {vector} [ zeroinitializer, %entry ], [ %new{k}, %body ]"
        for k in range(CHAINS)
    ]
    sums = [f"%sum0 = fadd {vector} %new0, zeroinitializer"]
    sums += [f"%sum{k} = fadd {vector} %sum{k - 1}, %new{k}" for k in range(1, CHAINS)]
    lines = [
        f"define float @{name}({parameters}) #0 {{",
        "entry:",
        "br label %body",
        "body:",
        "%round = phi i64 [ 0, %entry ], [ %next, %body ]",
        *entry,
        *steps,
        "%next = add i64 %round, 1",
        "%more = icmp ult i64 %next, %rounds",
        "br i1 %more, label %body, label %done",
        "done:",
        *sums,
        f"%result = extractelement {vector} %sum{CHAINS - 1}, i32 0",
        "ret float %result",
        "}",
    ]
    attributes = 'attributes #0 = { "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
    return "\n".join(lines) + "\n" + (attributes if name == "read" else "")


if __name__ == "__main__":
    for threads in (1, 2):
        limits = measure(threads)
        print(
            f"{threads} thread(s): {limits.flops / 1e9:.1f} GFLOP/s float32, "
            f"{limits.bytes_per_second / 1e9:.1f} GB/s read"
        )
