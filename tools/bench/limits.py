"""What the machine can do at most: multiply-adds and bytes read per second, measured.

The kernels are written as LLVM IR for the host's own vector width, so that no compiler's choices
come between: independent chains of FMA, and a sum over a buffer that is larger
than the caches.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle

import llvmlite.binding as llvm
import numpy as np

CHAINS = 12
"""Independent accumulators: two FMA units of latency 4 to 6 stay busy."""

ROUNDS = 6_000_000
"""Of the loop, for each thread: some 10 ms, beside which waking a thread is nothing."""

BUFFER_BYTES = 192 << 20
"""More than the last cache of most machines holds."""


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
    with Loops(threads) as loops:
        multiply = min(_timed(loops.multiply, threads) for _ in range(attempts))
        read = min(_timed(loops.read, threads) for _ in range(attempts))
        return Limits(threads, loops.operations * threads / multiply, loops.bytes_read / read)


class Loops:
    """The two loops, on up to `threads` threads, each on a cpu of its own: two that woke on one
    would share it for most of a loop. ctypes frees the interpreter's lock.

    operations: of each thread that multiplies. bytes_read: by all that read, together.
    """

    def __init__(self, threads: int) -> None:
        lanes = vector_lanes()
        self._kernels = _Kernels(lanes)
        cpus = cycle(sorted(os.sched_getaffinity(0)))
        self._pool = ThreadPoolExecutor(
            threads, initializer=lambda: os.sched_setaffinity(0, {next(cpus)})
        )
        self._step = lanes * CHAINS
        self._rounds = BUFFER_BYTES // 4 // self._step // threads * threads
        self._buffer = np.ones(self._rounds * self._step, np.float32)
        self.operations = 2 * self._step * ROUNDS
        self.bytes_read = self._buffer.nbytes

    def __enter__(self) -> Loops:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def multiply(self, threads: int) -> None:
        """Each of the threads multiplies and adds `operations` / 2 times."""
        list(self._pool.map(self._kernels.multiply, [ROUNDS] * threads))

    def read(self, threads: int) -> None:
        """The threads read the buffer, each a part of it."""
        share = self._rounds // threads
        starts = [self._buffer[i * share * self._step :].ctypes.data for i in range(threads)]
        list(self._pool.map(lambda start: self._kernels.read(start, share), starts))


def vector_lanes() -> int:
    """float32 lanes of the host's widest vectors, as LLVM sees its features."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 16
    return 8 if features.get("avx") else 4


def _timed(loop: Callable[[int], None], threads: int) -> float:
    """Seconds until the slowest thread is done."""
    start = time.perf_counter()
    loop(threads)
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
