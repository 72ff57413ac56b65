"""The two transforms of a tile as functions of a module, shared by kernels of the same shape."""

from collections.abc import Callable, Sequence

from llvmlite import ir

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import F32, I64, PTR, for_range, i64, internal_function, load, store
from cuvil.codegen.llvm_util import vector as vector_type
from cuvil.codegen.winograd.spec import TAPS
from cuvil.codegen.winograd.transform import Transform
from cuvil.plan.templates.cook_toom import matrices


def image_pass(
    module: ir.Module, facts: TargetFacts, m: int, channels: int, pitch: int
) -> ir.Function:
    """void f(tile of A, row stride, pixel stride, place): B^T d B for every channel.

    place: channels of the first frequency; those of the next are `pitch` elements further.
    """
    name = f"winograd.image{m}c{channels}p{pitch}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, I64, PTR], facts)
    source, row, pixel, target = function.args
    source.add_attribute("noalias")
    target.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    side = m + TAPS - 1
    transform = Transform(b, matrices(m)[2], facts.fma)

    def channels_at(first: ir.Value, lanes: int) -> None:
        kind = vector_type(F32, lanes)
        at = [
            [b.add(first, b.add(b.mul(row, i64(i)), b.mul(pixel, i64(j)))) for j in range(side)]
            for i in range(side)
        ]
        tile = [[load(b, source, place, kind) for place in line] for line in at]
        for i, line in enumerate(_both(transform, tile)):
            for j, value in enumerate(line):
                store(b, value, target, b.add(first, i64((i * side + j) * pitch)))

    _in_vectors(b, channels, facts.lanes("f32"), channels_at)
    b.ret_void()
    return function


def result_pass(
    module: ir.Module, facts: TargetFacts, m: int, shape: tuple[int, int], pitch: int
) -> ir.Function:
    """void f(sums of a tile, across, place): A^T M A for `shape` = (vectors, lanes) columns.

    Sums of the next frequency are `pitch` elements further. place is dense [m][across][columns],
    with room for [m][m]: pixels of a row that do not exist are overwritten by the next row.
    """
    vectors, lanes = shape
    name = f"winograd.result{m}x{vectors}v{lanes}p{pitch}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, PTR], facts)
    sums, across, target = function.args
    sums.add_attribute("noalias")
    target.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    side, width = m + TAPS - 1, vectors * lanes
    transform = Transform(b, matrices(m)[0], facts.fma)
    kind = vector_type(F32, lanes)
    for v in range(vectors):
        tile = [
            [load(b, sums, i64((i * side + j) * pitch + v * lanes), kind) for j in range(side)]
            for i in range(side)
        ]
        for i, line in enumerate(_both(transform, tile)):
            row = b.mul(across, i64(i * width))
            for j, value in enumerate(line):
                store(b, value, target, b.add(row, i64(j * width + v * lanes)))
    b.ret_void()
    return function


def copy_pass(module: ir.Module, facts: TargetFacts, side: int, channels: int) -> ir.Function:
    """void f(tile of A, row stride, pixel stride, rows, columns, place): a dense copy, in which
    pixels behind the last row and column are zero."""
    name = f"winograd.copy{side}c{channels}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, I64, I64, I64, PTR], facts)
    source, row, pixel, rows, columns, target = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    with for_range(b, i64(0), i64(side)) as i, for_range(b, i64(0), i64(side)) as j:
        inside = b.and_(b.icmp_signed("<", i, rows), b.icmp_signed("<", j, columns))
        place = b.mul(b.add(b.mul(i, i64(side)), j), i64(channels))
        start = b.add(b.mul(i, row), b.mul(j, pixel))

        def copied(first: ir.Value, lanes: int) -> None:
            value = load(b, source, b.add(start, first), vector_type(F32, lanes))
            store(b, value, target, b.add(place, first))

        def empty(first: ir.Value, lanes: int) -> None:
            none = ir.Constant(vector_type(F32, lanes), None)
            store(b, none, target, b.add(place, first))

        with b.if_else(inside) as (then, otherwise):
            with then:
                _in_vectors(b, channels, facts.lanes("f32"), copied)
            with otherwise:
                _in_vectors(b, channels, facts.lanes("f32"), empty)
    b.ret_void()
    return function


def _both(transform: Transform, tile: Sequence[Sequence[ir.Value]]) -> list[list[ir.Value]]:
    """The transform along columns, then along rows."""
    down = zip(*(transform.apply(column) for column in zip(*tile, strict=True)), strict=True)
    return [transform.apply(line) for line in down]


def _in_vectors(
    b: ir.IRBuilder, count: int, lanes: int, body: Callable[[ir.Value, int], None]
) -> None:
    """body(first, lanes) for all of `count` elements: whole vectors, then narrower ones."""
    whole = count // lanes * lanes
    if whole:
        with for_range(b, i64(0), i64(whole), i64(lanes)) as first:
            body(first, lanes)
    first_left = whole
    while first_left < count:
        while lanes > count - first_left:
            lanes //= 2
        body(i64(first_left), lanes)
        first_left += lanes
