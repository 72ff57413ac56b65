"""What the contraction and depthwise tests share: targets to generate for, and a runner."""

import ctypes
import mmap
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import pytest

from cuvil.codegen.contraction import emit_contraction, identity, scratch_bytes, task_count
from cuvil.codegen.contraction.harness import HostKernel, new_module
from cuvil.codegen.facts import TargetFacts

_HOST = llvm.get_host_cpu_features()
BASE = TargetFacts(triple=llvm.get_process_triple())
FMA8 = replace(BASE, features="+avx2,+fma", vector_bits=256, fma=True)
FMA16 = replace(
    FMA8,
    features="+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq",
    vector_bits=512,
    vector_registers=32,
    l1_bytes=48 * 1024,
    l1_ways=12,
    l2_bytes=1024 * 1024,
)


def _needs(*features):
    missing = [name for name in features if not _HOST.get(name)]
    return pytest.mark.skipif(bool(missing), reason=f"this machine lacks {missing}")


TARGETS = [
    pytest.param(BASE, id="4-lanes"),
    pytest.param(FMA8, id="8-lanes", marks=_needs("avx2", "fma")),
    pytest.param(FMA16, id="16-lanes", marks=_needs("avx512f", "avx512vl", "avx512bw")),
]
IN_ORDER = pytest.param(
    replace(BASE, vector_group=4, in_order=True, scalar_products=True), id="4-lanes-in-order"
)
BY_LANE = pytest.param(replace(BASE, vector_registers=32, lane_products=True), id="4-lanes-by-lane")
EVERY = [*TARGETS, IN_ORDER, BY_LANE]

_PAIRS = "llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd", "llvm.x86.avx512.pmaddw.d.512"
GROUPED = [
    *EVERY,
    pytest.param(
        replace(
            FMA8,
            features=f"{FMA8.features},+avxvnni",
            dots={"u8s8x4": "llvm.x86.avx512.vpdpbusd.256"},
        ),
        id="8-lanes-of-groups",
        marks=_needs("avx2", "fma", "avxvnni"),
    ),
    *(
        pytest.param(
            replace(t.values[0], dots={"i16x2": name}), id=f"{t.id}-of-pairs", marks=t.marks
        )
        for t, name in zip(TARGETS, _PAIRS, strict=True)
    ),
    pytest.param(
        replace(
            FMA16,
            features=f"{FMA16.features},+avx512bf16,+avx512vnni",
            dots={
                "bf16x2": "llvm.x86.avx512bf16.dpbf16ps.512",
                "u8s8x4": "llvm.x86.avx512.vpdpbusd.512",
            },
        ),
        id="16-lanes-of-groups",
        marks=_needs("avx512f", "avx512vl", "avx512bw", "avx512bf16", "avx512vnni"),
    ),
]


def guarded(values):
    """A copy of an array whose end is the end of its page: reading past it crashes."""
    values = np.asarray(values)
    room = -(-max(1, values.nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, room + mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(base + room), mmap.PAGESIZE, 0)
    copy = np.frombuffer(pages, values.dtype, values.size, room - values.nbytes)
    copy = copy.reshape(values.shape)
    copy[...] = values
    return copy


def contract(spec, facts, buffers, dims=(), epilogue=identity):
    """Runs a contraction over all its tasks, one at a time and last first; returns buffer c."""
    module = new_module(facts)
    emit_contraction(module, "kernel", spec, facts, epilogue)
    kernel = HostKernel(module, "kernel", facts, opt=1)
    buffers = [guarded(buffer) for buffer in buffers]
    run = kernel.bind(buffers, dims, scratch_bytes(spec, facts))
    for task in reversed(range(task_count(spec, facts, dims))):
        run(task, task + 1)
    return buffers[spec.c]


def close(found, wanted):
    """Equal within the rounding of re-ordered float32 sums."""
    scale = np.abs(wanted).max(initial=1e-30)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * scale)
