"""One panel of queries against all keys: scores, softmax, weighted sum of values, epilogue.

Keys come in blocks whose scores stay in L1. Behind the first block, what was summed before is
scaled down to the new maximum.
"""

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.attention.schedule import (
    Panel,
    key_block,
    micro_shape,
    scratch_of,
)
from cuvil.codegen.attention.softmax import Softmax
from cuvil.codegen.attention.spec import AttentionSpec
from cuvil.codegen.attention.transpose import pack_queries
from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.epilogue import Epilogue, EpilogueScope, apply_epilogue
from cuvil.codegen.contraction.microkernel import micro_kernel
from cuvil.codegen.contraction.tiles import runs
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    F32,
    I64,
    PTR,
    address,
    for_range,
    i64,
    internal_function,
    load,
    load_invariant,
    repeat,
    splat,
    store,
    vector,
)


def panel_function(
    kernel: ir.Function,
    spec: AttentionSpec,
    facts: TargetFacts,
    epilogue: Epilogue,
    panel: Panel,
) -> ir.Function:
    """The kernel's function for a panel.

    void f(buffers, dims, scratch, first query, queries, batch indices...)
    """
    name = f"{kernel.name}.panel{panel.vectors}"
    parameters = [PTR] * 3 + [I64] * (2 + len(spec.batch))
    function = internal_function(kernel.module, name, parameters, facts)
    _Panel(function, spec, facts, epilogue, panel).emit()
    return function


class _Panel:
    def __init__(
        self,
        function: ir.Function,
        spec: AttentionSpec,
        facts: TargetFacts,
        epilogue: Epilogue,
        panel: Panel,
    ) -> None:
        self.spec, self.facts, self.epilogue, self.panel = spec, facts, epilogue, panel
        self.module = function.module
        self.buffers, self.dims, scratch, self.row, self.rows, *self.batch = function.args
        self.b = b = ir.IRBuilder(function.append_basic_block("entry"))
        self.at = Arith(b, self.dims)
        places = scratch_of(spec, facts, panel)
        self.queries, self.scores, self.sums, self.factors = (
            address(b, scratch, i64(place), F32)
            for place in (places.queries, places.scores, places.sums, places.factors)
        )
        self.k, self.v = self._base("k", spec.k_at), self._base("v", spec.v_at)
        self.k_stride = self.at.value(self.at.size(spec.keys.k))
        self.v_stride = self.at.value(self.at.size(spec.keys.v))

    def _base(self, tensor: str, buffer: int, row: Index = 0) -> ir.Value:
        """Where this batch of a tensor begins. row: elements more."""
        at = self.at
        strides = [at.size(getattr(dim, tensor)) for dim in self.spec.batch]
        offset = at.add(at.dot(self.batch, strides), row)
        base = load_invariant(self.b, self.buffers, buffer, PTR)
        return address(self.b, base, at.value(offset), F32)

    def emit(self) -> None:
        """The whole body."""
        at, spec, panel = self.at, self.spec, self.panel
        stride = at.size(spec.rows.q)
        pack_queries(
            self.b, self._base("q", spec.q_at, at.mul(self.row, stride)),
            (at.value(stride), at.value(at.size(spec.q_step))),
            self.rows, spec.width, panel.lanes, panel.vectors, spec.scale, self.queries,
        )  # fmt: skip
        keys = at.size(spec.keys.extent)
        if spec.causal:
            keys = at.minimum(keys, at.add(self.row, self.rows))
        self.softmax = Softmax(
            self.at, spec, self.facts, panel, self.buffers, self.batch, self.row, self.rows,
            self.scores,
        )  # fmt: skip
        totals = self._all_keys(keys)
        self.softmax.store_inverse(totals, keys, self.factors)
        self._finish()
        self.b.ret_void()

    # -- keys ----------------------------------------------------------------------------------
    def _all_keys(self, keys: Index) -> list[ir.Value]:
        """Sums of values in scratch; returns the sums of weights."""
        at, block = self.at, key_block(self.spec, self.facts, self.panel)
        start = self.softmax.start()
        if isinstance(keys, int) and keys <= block:
            return self._block(None, 0, keys, start)[self.panel.vectors :]
        blocks = at.maximum(1, at.ceil_div(keys, block))

        def trip(nth: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            first = at.mul(nth, block)
            return self._block(nth, first, at.minimum(block, at.sub(keys, first)), state)

        return repeat(self.b, at.value(blocks), start, trip)[self.panel.vectors :]

    def _block(
        self, nth: ir.Value | None, first: Index, count: Index, state: list[ir.Value]
    ) -> list[ir.Value]:
        """One block of keys. nth: its number, None where it is the only one."""
        self._scores(first, count)
        self.softmax.mask(first, count)
        state, factors = self.softmax.weights(count, state)
        if nth is not None:
            with self.b.if_then(self.b.icmp_signed(">", nth, i64(0))):
                self._rescale(factors)
        self._mix(nth, first, count)
        return state

    def _scores(self, first: Index, count: Index) -> None:
        at, panel, width = self.at, self.panel, self.panel.width
        extents = [i64(self.spec.width), at.value(at.size(self.spec.k_step))]
        unit = at.size(self.spec.k_step) == 1
        for start, tiles, size in runs(at, count, panel.keys):
            shape = micro_shape(self.facts, size, panel.vectors, panel.lanes, width, unit)
            kernel = micro_kernel(self.module, self.facts, shape)
            with for_range(self.b, i64(0), at.value(tiles)) as nth:
                key = at.add(start, at.mul(nth, size))
                k = self._element(self.k, at.mul(at.add(first, key), self.k_stride))
                tile = self._element(self.scores, at.mul(key, width))
                strides = [i64(0), i64(0), self.k_stride]
                self.b.call(kernel, [k, self.queries, tile, *strides, *extents])

    # -- values --------------------------------------------------------------------------------
    def _mix(self, nth: ir.Value | None, first: Index, count: Index) -> None:
        """Adds the weighted values of a block to the sums; the first block starts them."""
        at, b, panel = self.at, self.b, self.panel
        resume = i64(0) if nth is None else nth
        v = self._element(self.v, at.mul(first, self.v_stride))
        for piece in panel.pieces:
            shape = micro_shape(self.facts, panel.rows, piece.vectors, piece.lanes, 0, False)
            kernel = micro_kernel(self.module, self.facts, shape)
            columns = self._element(v, piece.first)
            with for_range(b, i64(0), at.value(at.ceil_div(self.rows, panel.rows))) as tile:
                row = at.mul(tile, panel.rows)
                weights = self._element(self.scores, row)
                sums = self._element(self._piece(piece.place), at.mul(row, piece.width))
                strides = [resume, i64(0), i64(1)]
                loops = [at.value(count), i64(panel.width)]
                b.call(kernel, [weights, columns, sums, *strides, *loops, self.v_stride])

    def _rescale(self, factors: Sequence[ir.Value]) -> None:
        """Multiplies the sums of every query by its factor."""
        b, panel = self.b, self.panel
        for i, factor in enumerate(factors):
            store(b, factor, self.factors, i64(i * panel.lanes))
        with for_range(b, i64(0), self.rows) as row:
            for piece in panel.pieces:
                factor = splat(b, load(b, self.factors, row, F32), piece.lanes)
                base = b.mul(row, i64(piece.width))
                for i in range(piece.vectors):
                    at = b.add(base, i64(i * piece.lanes))
                    place = self._piece(piece.place)
                    value = load(b, place, at, vector(F32, piece.lanes))
                    store(b, b.fmul(value, factor), place, at)

    def _finish(self) -> None:
        """Divides by the sums of weights and applies the epilogue, a query at a time."""
        b, at, spec = self.b, self.at, self.spec
        outer = at.dot(self.batch, [at.size(dim.c) for dim in spec.batch])
        with for_range(b, i64(0), self.rows) as nth:
            row = b.add(self.row, nth)
            base = at.add(outer, at.mul(row, at.size(spec.rows.c)))
            inverse = load(b, self.factors, nth, F32)
            for piece in self.panel.pieces:
                factor = splat(b, inverse, piece.lanes)
                for i in range(piece.vectors):
                    place = at.add(at.mul(nth, piece.width), i * piece.lanes)
                    value = load(
                        b, self._piece(piece.place), at.value(place), vector(F32, piece.lanes)
                    )
                    column = piece.first + i * piece.lanes
                    scope = EpilogueScope(
                        b, self.buffers, self.dims, piece.lanes, self.batch, [row],
                        i64(column), at.value(at.add(base, column)),
                    )  # fmt: skip
                    apply_epilogue(scope, self.epilogue, b.fmul(value, factor), spec.c_at)

    def _piece(self, place: int) -> ir.Value:
        """The sums of a piece's columns: dense [query][column]."""
        return self._element(self.sums, place * self.panel.width)

    def _element(self, base: ir.Value, offset: Index) -> ir.Value:
        return address(self.b, base, self.at.value(offset), F32)
