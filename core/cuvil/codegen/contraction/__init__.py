"""Contractions (matrix products, convolutions as implicit GEMM) as LLVM kernels.

Fill a `ContractionSpec`, pack B with `pack_panels`, call `emit_contraction`; the host program asks
`task_count` for tasks and reserves `scratch_bytes` per thread.
"""

from cuvil.codegen.contraction.arith import Arith, Size, Slot
from cuvil.codegen.contraction.cut import task_count
from cuvil.codegen.contraction.epilogue import Epilogue, EpilogueScope, identity
from cuvil.codegen.contraction.kernel import emit_contraction
from cuvil.codegen.contraction.schedule import scratch_bytes
from cuvil.codegen.contraction.spec import (
    BatchDim,
    ContractionSpec,
    KDim,
    RowDim,
    merge_k,
    merge_rows,
)
from cuvil.plan.packing import pack_panels

__all__ = [
    "Arith",
    "BatchDim",
    "ContractionSpec",
    "Epilogue",
    "EpilogueScope",
    "KDim",
    "RowDim",
    "Size",
    "Slot",
    "emit_contraction",
    "identity",
    "merge_k",
    "merge_rows",
    "pack_panels",
    "scratch_bytes",
    "task_count",
]
