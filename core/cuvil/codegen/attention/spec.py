"""What an attention kernel computes, with every stride in elements.

C[batch, m, :] = epilogue(sum over n of softmax(S)[batch, m, n] * V[batch, n, :]), where
S[batch, m, n] = scale * sum over d of Q[batch, m, d] * K[batch, n, d], then masked. Columns of V
and C are contiguous.
"""

from dataclasses import dataclass

from cuvil.codegen.contraction.arith import Size


@dataclass(frozen=True)
class BatchDim:
    """One batch dim: its extent, and its stride in each tensor (0: shared)."""

    extent: Size
    q: Size
    k: Size
    v: Size
    mask: Size
    c: Size


@dataclass(frozen=True)
class Rows:
    """The queries. mask: 0 where one row of the mask serves all, else 1."""

    extent: Size
    q: Size
    mask: int
    c: Size


@dataclass(frozen=True)
class Keys:
    """The keys and values."""

    extent: Size
    k: Size
    v: Size
    mask: Size


@dataclass(frozen=True)
class AttentionChoice:
    """A cut that was measured. vectors: of queries, of the widest panel; tiles: of keys, whose
    scores lie in scratch together; rows: of the result's register tile. 0: as costs say."""

    vectors: int = 0
    tiles: int = 0
    rows: int = 0


@dataclass(frozen=True)
class AttentionSpec:
    """One attention kernel.

    width: elements of a query; q_step, k_step: from one of them to the next. columns: of V.
    mask: "" for none, "add" for floats, "select" for bytes that are zero where the score is
    `fill`. causal: query m does not see keys behind the m-th. q_at ... mask_at: indices into the
    kernel's `buffers`. choice: how it is cut, where costs are not to decide.
    """

    batch: tuple[BatchDim, ...]
    rows: Rows
    keys: Keys
    width: int
    columns: int
    q_step: Size = 1
    k_step: Size = 1
    scale: float = 1.0
    mask: str = ""
    fill: float = float("-inf")
    causal: bool = False
    q_at: int = 0
    k_at: int = 1
    v_at: int = 2
    c_at: int = 3
    mask_at: int = 4
    choice: AttentionChoice = AttentionChoice()
