"""Scaled dot-product attention as one LLVM kernel: scores never leave the core that made them.

Fill an `AttentionSpec`, call `emit_attention`; the host program asks `task_count` for
tasks and reserves `scratch_bytes` per thread.
"""

from cuvil.codegen.attention.kernel import emit_attention
from cuvil.codegen.attention.schedule import alternatives, scratch_bytes, task_count
from cuvil.codegen.attention.spec import AttentionChoice, AttentionSpec, BatchDim, Keys, Rows

__all__ = [
    "AttentionChoice",
    "AttentionSpec",
    "BatchDim",
    "Keys",
    "Rows",
    "alternatives",
    "emit_attention",
    "scratch_bytes",
    "task_count",
]
