"""Winograd's convolutions as LLVM kernels: 3x3 taps at stride 1 with fewer products.

Fill a `WinogradSpec`, transform the taps (`plan.templates.winograd`), call `emit_winograd`; the
host program asks `task_count` for tasks and reserves `scratch_bytes` per thread.
"""

from cuvil.codegen.winograd.kernel import emit_winograd
from cuvil.codegen.winograd.schedule import scratch_bytes, task_count
from cuvil.codegen.winograd.spec import Image, Result, WinogradSpec

__all__ = [
    "Image",
    "Result",
    "WinogradSpec",
    "emit_winograd",
    "scratch_bytes",
    "task_count",
]
