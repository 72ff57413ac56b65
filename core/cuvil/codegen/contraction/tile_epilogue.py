"""One function per epilogue: reads a tile of sums from scratch, applies it, writes C.

A loop over the tile's rows keeps the code small however long the epilogue is; the tile is in L1.
"""

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith
from cuvil.codegen.contraction.dot import sum_type
from cuvil.codegen.contraction.epilogue import (
    Epilogue,
    EpilogueScope,
    apply_epilogue,
    column_mask,
)
from cuvil.codegen.contraction.spec import ContractionSpec
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I64,
    PTR,
    address,
    for_range,
    i64,
    internal_function,
    load,
    vector,
)


def tile_epilogue_function(
    kernel: ir.Function,
    spec: ContractionSpec,
    facts: TargetFacts,
    epilogue: Epilogue,
    lanes: int,
    vectors: int,
    masked: bool,
) -> ir.Function:
    """The kernel's function for tiles of `vectors` vectors, emitted at its first use.

    void f(buffers, dims, sums, rows outer, rows inner, column, columns, row starts..., batch...)
    sums is dense [outer][inner][vectors*lanes]; column is the tile's first; `columns` counts those
    that exist, and is read only when `masked`.
    """
    module = kernel.module
    name = f"{kernel.name}.epilogue{vectors}v{lanes}{'m' if masked else ''}"
    if name in module.globals:
        return module.globals[name]
    parameters = [PTR] * 3 + [I64] * (4 + len(spec.rows) + len(spec.batch))
    function = internal_function(module, name, parameters, facts)
    function.args[2].add_attribute("noalias")
    _Emitter(function, spec, epilogue, lanes, vectors, masked).emit()
    return function


class _Emitter:
    def __init__(
        self,
        function: ir.Function,
        spec: ContractionSpec,
        epilogue: Epilogue,
        lanes: int,
        vectors: int,
        masked: bool,
    ) -> None:
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.spec, self.epilogue = spec, epilogue
        self.lanes, self.vectors = lanes, vectors
        self.buffers, self.dims, self.sums, *rest = function.args
        self.outer, self.inner, self.column, self.count, *rest = rest
        self.starts, self.batch = rest[: len(spec.rows)], rest[len(spec.rows) :]
        self.masks = [
            column_mask(self.b, lanes, self.count, v * lanes) if masked else None
            for v in range(vectors)
        ]

    def emit(self) -> None:
        """Loops over the rows, all vectors of a row at once."""
        b = self.b
        with for_range(b, i64(0), self.outer) as i, for_range(b, i64(0), self.inner) as j:
            rows = list(self.starts)
            rows[-1] = b.add(rows[-1], j)
            if len(rows) > 1:
                rows[-2] = b.add(rows[-2], i)
            row = b.add(b.mul(i, self.inner), j)
            self._row(rows, address(b, self.sums, b.mul(row, i64(self._width)), self._element))
        b.ret_void()

    @property
    def _width(self) -> int:
        return self.lanes * self.vectors

    @property
    def _element(self) -> ir.Type:
        return sum_type(self.spec.dtype)

    def _row(self, rows: list[ir.Value], sums: ir.Value) -> None:
        b, spec, at = self.b, self.spec, Arith(self.b, self.dims)
        base = at.add(
            at.dot(rows, [at.size(dim.c_stride) for dim in spec.rows]),
            at.dot(self.batch, [at.size(dim.c_stride) for dim in spec.batch]),
        )
        shift = at.dot(self.batch, [at.size(dim.col_stride) for dim in spec.batch])
        old = spec.dtype if spec.accumulate else ""  # of elements, not of groups
        for v, mask in enumerate(self.masks):
            first = b.add(self.column, i64(v * self.lanes))
            scope = EpilogueScope(
                b, self.buffers, self.dims, self.lanes, self.batch, rows,
                at.value(at.add(first, shift)), at.value(at.add(first, base)), mask,
            )  # fmt: skip
            acc = load(b, sums, i64(v * self.lanes), vector(self._element, self.lanes))
            apply_epilogue(scope, self.epilogue, acc, spec.c, old)
