"""From a tile of sums to C: the epilogue on its rows.

Of sums that a micro-kernel has left in scratch, by one function per epilogue: a loop over the rows
keeps the code small however long the epilogue is, and the tile is in L1. Of short sums while they
are in registers, by one function per tile size: storing and loading them would take a part of the
time that the sums take.
"""

from collections.abc import Callable, Sequence

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith
from cuvil.codegen.contraction.dot import sum_type
from cuvil.codegen.contraction.epilogue import (
    Epilogue,
    EpilogueScope,
    apply_epilogue,
    column_mask,
)
from cuvil.codegen.contraction.micro_shape import MicroKernel
from cuvil.codegen.contraction.microkernel import tile_sums
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
    name = f"{kernel.name}.epilogue{vectors}v{lanes}{'m' if masked else ''}"
    if name in kernel.module.globals:
        return kernel.module.globals[name]
    parameters = [PTR] * 3 + [I64] * (4 + len(spec.rows) + len(spec.batch))
    function = internal_function(kernel.module, name, parameters, facts)
    buffers, dims, sums, outer, inner, *place = function.args
    sums.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows = _Rows(b, spec, epilogue, (lanes, vectors, masked), [buffers, dims, *place])
    width, kind = lanes * vectors, vector(sum_type(spec.dtype), lanes)
    with for_range(b, i64(0), outer) as i, for_range(b, i64(0), inner) as j:
        row = b.add(b.mul(i, inner), j)
        line = address(b, sums, b.mul(row, i64(width)), sum_type(spec.dtype))
        rows.write(i, j, lambda v: load(b, line, i64(v * lanes), kind))
    b.ret_void()
    return function


def whole_tile_function(
    kernel: ir.Function,
    spec: ContractionSpec,
    facts: TargetFacts,
    epilogue: Epilogue,
    shape: MicroKernel,
    masked: bool,
) -> ir.Function:
    """The kernel's function for tiles of a shape, emitted at its first use: sums, then C.

    void f(buffers, dims, column, columns, row starts..., batch..., then as of `tile_sums`)
    """
    name = f"{kernel.name}.{shape.name}{'m' if masked else ''}"
    if name in kernel.module.globals:
        return kernel.module.globals[name]
    places = 2 + len(spec.rows) + len(spec.batch)
    operands = [PTR] * 2 + [I64] * (2 + 2 * shape.levels) + [PTR] * bool(shape.following)
    parameters = [PTR] * 2 + [I64] * places + operands
    function = internal_function(kernel.module, name, parameters, facts)
    arguments = list(function.args)
    for pointer in arguments[2 + places : 4 + places]:
        pointer.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    sums = tile_sums(b, arguments[2 + places :], shape, facts)
    size = shape.lanes, shape.vectors, masked
    rows = _Rows(b, spec, epilogue, size, arguments[: 2 + places])
    outer, inner = shape.rows
    for i in range(outer):
        for j in range(inner):
            first = (i * inner + j) * shape.vectors
            rows.write(i64(i), i64(j), sums[first : first + shape.vectors].__getitem__)
    b.ret_void()
    return function


class _Rows:
    """Writes rows of a tile. size: lanes and vectors of a row, and whether columns are missing.
    place: buffers, dims, column, columns, row starts..., batch..."""

    def __init__(
        self,
        b: ir.IRBuilder,
        spec: ContractionSpec,
        epilogue: Epilogue,
        size: tuple[int, int, bool],
        place: Sequence[ir.Value],
    ) -> None:
        self.b, self.spec, self.epilogue = b, spec, epilogue
        self.lanes, vectors, masked = size
        self.buffers, self.dims, self.column, count, *rest = place
        self.starts, self.batch = rest[: len(spec.rows)], rest[len(spec.rows) :]
        self.masks = [
            column_mask(b, self.lanes, count, v * self.lanes) if masked else None
            for v in range(vectors)
        ]

    def write(self, i: ir.Value, j: ir.Value, sums: Callable[[int], ir.Value]) -> None:
        """All vectors of row (i, j) of the tile; sums: a vector by its number."""
        b, spec, at = self.b, self.spec, Arith(self.b, self.dims)
        rows = list(self.starts)
        rows[-1] = b.add(rows[-1], j)
        if len(rows) > 1:
            rows[-2] = b.add(rows[-2], i)
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
            apply_epilogue(scope, self.epilogue, sums(v), spec.c, old)
