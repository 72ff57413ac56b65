"""The shape of a micro-kernel: what tells one from another."""

from dataclasses import dataclass

from cuvil.codegen.contraction.matrix_steps import MatrixOperands


@dataclass(frozen=True)
class MicroKernel:
    """The shape of one micro-kernel.

    rows: the tile's rows as (outer, inner), each with a stride parameter of its own.
    vectors, lanes: the tile is vectors*lanes columns wide. panel: row pitch of packed B; 0: a
    parameter of its own.
    levels: nested k loops. chains: independent sums per accumulator (hides the FMA's latency
    where rows*vectors is small). unroll: k steps per trip of the innermost loop.
    unit: the innermost k stride of A is 1. ahead: k steps by which B is prefetched, 0 for none.
    following: elements of what follows in B that each step asks for, for tiles whose own B has been
    asked for by those before; 0: `ahead` is meant.
    chunk: k steps after which sums in registers are added to the tile and begin anew, 0 for never:
    a long sum in one chain of roundings is far less exact than a sum of short ones.
    early: operands of a step are loaded during the one before, with one chain and no unrolling.
    by_lane: numbers of A are lanes of vectors; for those whose innermost k stride is 1.
    matrix: rows of A and columns of B are multiplied in pairs; likewise, and chains are 2 at most.
    halves: B is stored as float16, and widened when it is loaded. half_rows: so is A; or both are
    multiplied as they are.
    """

    rows: tuple[int, int]
    vectors: int
    lanes: int
    panel: int
    levels: int = 1
    chains: int = 1
    unroll: int = 1
    unit: bool = True
    ahead: int = 0
    chunk: int = 0
    dtype: str = "f32"
    early: bool = False
    by_lane: bool = False
    matrix: MatrixOperands | None = None
    halves: bool = False
    half_rows: bool = False
    following: int = 0

    @property
    def stored(self) -> str:
        """The dtype in which B lies in memory."""
        return "f16" if self.halves else self.dtype

    @property
    def name(self) -> str:
        """The function's name in its module."""
        shape = f"{self.rows[0]}x{self.rows[1]}x{self.vectors}v{self.lanes}p{self.panel}"
        loops = f"k{self.levels}c{self.chains}u{self.unroll}"
        loops += f"n{self.following}" if self.following else f"a{self.ahead}"
        loops += "" if self.unit else "s"
        loops += f"f{self.chunk}" if self.chunk else ""
        loops += "e" * self.early + "l" * self.by_lane + "h" * self.halves + "r" * self.half_rows
        if self.matrix:
            loops += "m" + "c" * self.matrix.columns + "r" * self.matrix.rows
        return f"tile.{self.dtype}.{shape}.{loops}"
