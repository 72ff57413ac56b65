"""The epilogue protocol: what a caller emits on each vector of sums before it is stored."""

from collections.abc import Callable, Sequence

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Size
from cuvil.codegen.llvm_util import (
    I64,
    KERNEL_TYPE,
    PTR,
    element_type,
    lane_mask,
    load,
    load_invariant,
    masked_load,
    masked_store,
    splat,
    store,
    vector,
)


class EpilogueScope:
    """Where an epilogue stands: one row and `lanes` columns of the result.

    builder: emits. lanes: columns of this vector. rows, batch: i64 indices, one per dim of the
    spec. col: i64 index of the first column, batch col_strides included. c_offset: where the
    vector begins in C, in elements.
    """

    def __init__(
        self,
        b: ir.IRBuilder,
        buffers: ir.Value,
        dims: ir.Value,
        lanes: int,
        batch: Sequence[ir.Value],
        rows: Sequence[ir.Value],
        col: ir.Value,
        c_offset: ir.Value,
        mask: ir.Value | None = None,
    ) -> None:
        self.builder, self.lanes = b, lanes
        self.batch, self.rows, self.col, self.c_offset = list(batch), list(rows), col, c_offset
        self._buffers, self._dims, self._mask = buffers, dims, mask

    def size(self, size: Size) -> ir.Value:
        """A static or run-time size as an i64."""
        at = Arith(self.builder, self._dims)
        return at.value(at.size(size))

    def buffer(self, index: int) -> ir.Value:
        """The base pointer of a buffer."""
        return load_invariant(self.builder, self._buffers, index, PTR)

    def load(self, buffer: int, dtype: str, offset: ir.Value) -> ir.Value:
        """`lanes` contiguous elements from buffer[offset], as stored; zeros past the last one."""
        kind = vector(element_type(dtype), self.lanes)
        base = self.buffer(buffer)
        if self._mask is None:
            return load(self.builder, base, offset, kind)
        return masked_load(self.builder, base, offset, kind, self._mask)

    def load_broadcast(self, buffer: int, dtype: str, offset: ir.Value) -> ir.Value:
        """buffer[offset] in every lane."""
        value = load(self.builder, self.buffer(buffer), offset, element_type(dtype))
        return splat(self.builder, value, self.lanes)

    def store(self, buffer: int, value: ir.Value, offset: ir.Value) -> None:
        """buffer[offset : offset+lanes] = value, without the columns past the last one."""
        base = self.buffer(buffer)
        if self._mask is None:
            store(self.builder, value, base, offset)
        else:
            masked_store(self.builder, value, base, offset, self._mask)


Epilogue = Callable[[EpilogueScope, ir.Value], ir.Value | None]
"""From a vector of sums to the vector that is stored to C: its element type is C's. An epilogue
that returns None has stored its results itself."""


def identity(scope: EpilogueScope, acc: ir.Value) -> ir.Value:
    """The sums themselves."""
    return acc


def apply_epilogue(
    scope: EpilogueScope, epilogue: Epilogue, acc: ir.Value, c: int, accumulate_as: str = ""
) -> None:
    """Emits one vector: adds C's old value (a dtype, or "" for no), epilogue, store to buffer c."""
    if accumulate_as:
        acc = scope.builder.fadd(acc, scope.load(c, accumulate_as, scope.c_offset))
    result = epilogue(scope, acc)
    if result is not None:
        scope.store(c, result, scope.c_offset)


def epilogue_length(epilogue: Epilogue, kind: ir.Type, batch: int, rows: int) -> int:
    """Instructions that an epilogue emits per vector, found by emitting it once aside.

    batch, rows: how many dims of each its scope has.
    """
    module = ir.Module()
    function = ir.Function(module, KERNEL_TYPE, "aside")
    b = ir.IRBuilder(function.append_basic_block())
    buffers, dims, index, _, _ = function.args
    at = [index] * batch, [index] * rows
    lanes = kind.count if isinstance(kind, ir.VectorType) else 1
    scope = EpilogueScope(b, buffers, dims, lanes, *at, index, index)
    apply_epilogue(scope, epilogue, ir.Constant(kind, ir.Undefined), 0)
    return sum(len(block.instructions) for block in function.blocks)


def column_mask(b: ir.IRBuilder, lanes: int, count: ir.Value, first: int) -> ir.Value:
    """Which of the columns first..first+lanes of a tile are below `count`."""
    return lane_mask(b, lanes, b.sub(count, ir.Constant(I64, first)))
