"""What a contraction is: C[batch, rows, n] = epilogue(sum over k of A[batch, rows, k] * B[n, k]).

Every extent and stride counts elements; of groups, where dtype is one (see `facts.GROUPS`), those
of A and B count groups: their last k dim lies together. B is packed in panels (see `packing`), its
k order is row-major over `k`. Offsets of A and C are sums of index * stride; C's columns are
contiguous.
"""

from dataclasses import dataclass

from cuvil.codegen.contraction.arith import Size


@dataclass(frozen=True)
class RowDim:
    """One dim of the rows, outer to inner: [M] for a product, [OH, OW] for a convolution."""

    extent: Size
    a_stride: Size
    c_stride: Size


@dataclass(frozen=True)
class BatchDim:
    """One batch dim. b_stride 0 shares B. col_stride is added to the columns that the epilogue
    sees, so that groups of a convolution continue one another."""

    extent: Size
    a_stride: Size
    b_stride: Size
    c_stride: Size
    col_stride: Size = 0


@dataclass(frozen=True)
class KDim:
    """One dim of the sum, outer to inner: [K], or [KH, KW, C] of a convolution."""

    extent: Size
    a_stride: Size


@dataclass(frozen=True)
class CutChoice:
    """A cut that was measured. vectors, rows: of the register tile; k_blocks: passes over the
    sum; pack: which of `schedule.PACKS`. 0: as costs say."""

    vectors: int = 0
    rows: int = 0
    k_blocks: int = 0
    pack: int = 0


@dataclass(frozen=True)
class ContractionSpec:
    """One contraction kernel. rows and k need at least one dim each.

    panel: columns per panel of B, a multiple or a divisor of the target's lanes, a power of two
    or a multiple of the tile's width. a, b, c: indices into the kernel's `buffers`.
    accumulate: C's old value is added to the sum before the epilogue. choice: how it is cut, where
    costs are not to decide. halves: B is stored as float16, A and the sums are float32.
    half_rows: A is stored as float16, too.
    """

    batch: tuple[BatchDim, ...]
    rows: tuple[RowDim, ...]
    k: tuple[KDim, ...]
    n: Size
    panel: int = 32
    dtype: str = "f32"
    a: int = 0
    b: int = 1
    c: int = 2
    accumulate: bool = False
    choice: CutChoice = CutChoice()
    halves: bool = False
    half_rows: bool = False

    @property
    def stored(self) -> str:
        """The dtype in which B lies."""
        return "f16" if self.halves else self.dtype

    @property
    def row_dtype(self) -> str:
        """The dtype in which A lies in memory."""
        return "f16" if self.half_rows else self.dtype


def merge_k(dims: tuple[KDim, ...]) -> tuple[KDim, ...]:
    """The same sum with fewer loops: dims that continue one another in A become one.

    Dims of extent 1 vanish; at least one dim is left.
    """
    merged: list[KDim] = []
    for dim in dims:
        if dim.extent == 1:
            continue
        last = merged[-1] if merged else None
        if last and _continues(last.extent, last.a_stride, dim.extent, dim.a_stride):
            merged[-1] = KDim(_times(last.extent, dim.extent), dim.a_stride)
        else:
            merged.append(dim)
    return tuple(merged) or (KDim(1, 1),)


def merge_rows(dims: tuple[RowDim, ...]) -> tuple[RowDim, ...]:
    """Rows with fewer dims where both A and C allow it.

    For the planner: an epilogue that is emitted for the result sees the merged indices, so its
    own operands must be laid out like C.
    """
    merged: list[RowDim] = []
    for dim in dims:
        if dim.extent == 1:
            continue
        last = merged[-1] if merged else None
        if (
            last
            and _continues(last.extent, last.a_stride, dim.extent, dim.a_stride)
            and _continues(last.extent, last.c_stride, dim.extent, dim.c_stride)
        ):
            merged[-1] = RowDim(_times(last.extent, dim.extent), dim.a_stride, dim.c_stride)
        else:
            merged.append(dim)
    return tuple(merged) or (RowDim(1, 0, 0),)


def _continues(count: Size, outer: Size, extent: Size, inner: Size) -> bool:
    if not all(isinstance(size, int) for size in (count, outer, extent, inner)):
        return False
    return outer == _times(extent, inner)


def _times(x: Size, y: Size) -> int:
    assert isinstance(x, int) and isinstance(y, int)
    return x * y
