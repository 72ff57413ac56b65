"""Where a kernel reads the rows of A: in place, or from a copy in scratch."""

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.dot import align_of
from cuvil.codegen.contraction.matrix_steps import pair_rows
from cuvil.codegen.contraction.pack_rows import pack_rows_function
from cuvil.codegen.contraction.schedule import Schedule, pack_pitch, packed_rows
from cuvil.codegen.contraction.spec import ContractionSpec
from cuvil.codegen.contraction.tiles import TileGrid
from cuvil.codegen.facts import TargetFacts, dtype_bits
from cuvil.codegen.llvm_util import address, element_type, for_range, i64


class RowsOfA:
    """Rows of A as the micro-kernels take them: a pointer per tile and two strides.

    `packed` is an i1 value, or a bool where it is known: rows come from the copy.
    """

    def __init__(
        self,
        at: Arith,
        spec: ContractionSpec,
        schedule: Schedule,
        facts: TargetFacts,
        base: ir.Value,
        scratch: ir.Value,
    ) -> None:
        self.at, self.b, self.spec, self.schedule = at, at.b, spec, schedule
        self.facts, self.base, self.scratch = facts, base, scratch
        self.element = element_type(spec.row_dtype)
        self.copied = element_type(spec.dtype if schedule.widened else spec.row_dtype)
        self.all_strides = [at.size(dim.a_stride) for dim in spec.rows]
        outer = self.all_strides[-2] if len(self.all_strides) > 1 else 0
        self.plain = [at.value(outer), at.value(self.all_strides[-1])]
        self.in_pairs = schedule.matrix is not None and schedule.matrix.rows_in_pairs
        self.packed = self._is_packed()
        self.strides = self._strides()

    def pointer(self, offset: Index, starts: list[Index], nth: Index) -> ir.Value:
        """The first row of a tile. offset: of the batch and k block; nth: among the task's."""
        if self.packed is True:
            return self._copy(nth)
        place = self._place(offset, starts)
        if self.packed is False:
            return place
        return self.b.select(self.packed, self._copy(nth), place)

    def prepare(self, grid: TileGrid, offset: Index, first: Index, last: Index, k: Index) -> None:
        """Copies k columns of the rows of tiles [first, last), where the copy is used."""
        if self.packed is True:
            self._pack(grid, offset, first, last, k)
        elif self.packed is not False:
            with self.b.if_then(self.packed):
                self._pack(grid, offset, first, last, k)

    def _is_packed(self) -> ir.Value | bool:
        if self.in_pairs:
            count = self.at.product([self.at.size(dim.extent) for dim in self.spec.rows])
            if isinstance(count, int):
                return count > 1
            return self.b.icmp_signed(">", count, i64(1))
        if self.schedule.pack != "aliased":
            return self.schedule.pack == "always"
        step = self.b.mul(self.plain[1], i64(dtype_bits(self.spec.row_dtype) // 8))
        page = self.facts.l1_bytes // self.facts.l1_ways
        return self.b.icmp_signed("==", self.b.and_(step, i64(page - 1)), i64(0))

    def _strides(self) -> list[ir.Value]:
        if self.packed is False:
            return self.plain
        pitch = pack_pitch(self.schedule)
        copied = [i64(pitch * self.schedule.tile[-1]), i64(pitch)]
        if self.packed is True:
            return copied
        pairs = zip(copied, self.plain, strict=True)
        return [self.b.select(self.packed, x, y) for x, y in pairs]

    def _pack(self, grid: TileGrid, offset: Index, first: Index, last: Index, k: Index) -> None:
        at, pitch = self.at, i64(pack_pitch(self.schedule))
        module, facts, dtype = self.b.module, self.facts, self.spec.row_dtype
        if self.in_pairs:
            copy = pair_rows(module, facts, align_of(dtype))
        else:
            copy = pack_rows_function(module, facts, dtype, self.schedule.widened)
        with for_range(self.b, at.value(first), at.value(last)) as tile:
            starts, sizes = grid.rows(grid.indices(tile))
            extents = [at.value(sizes[-2] if len(sizes) > 1 else 1), at.value(sizes[-1])]
            source, target = self._place(offset, starts), self._copy(at.sub(tile, first))
            group = [] if self.in_pairs else [i64(self.schedule.tile[-1])]
            self.b.call(copy, [source, target, *extents, *self.plain, at.value(k), pitch, *group])

    def _place(self, offset: Index, starts: list[Index]) -> ir.Value:
        inside = self.at.dot(starts, self.all_strides)
        place = self.at.value(self.at.add(offset, inside))
        return address(self.b, self.base, place, self.element)

    def _copy(self, nth: Index) -> ir.Value:
        tile = packed_rows(self.schedule) * pack_pitch(self.schedule)
        return address(self.b, self.scratch, self.at.value(self.at.mul(nth, tile)), self.copied)
