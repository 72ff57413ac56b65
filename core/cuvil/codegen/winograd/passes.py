"""The two transforms of a tile as functions of a module, shared by kernels of the same shape."""

from collections.abc import Callable, Sequence

from llvmlite import ir

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import F32, I64, PTR, for_range, i64, internal_function, load, store
from cuvil.codegen.llvm_util import vector as vector_type
from cuvil.codegen.winograd.spec import WinogradSpec
from cuvil.codegen.winograd.transform import Transform
from cuvil.plan.templates.cook_toom import matrices


def image_pass(
    module: ir.Module, facts: TargetFacts, spec: WinogradSpec, pitch: int
) -> ir.Function:
    """void f(tile of A, row stride, pixel stride, place): B^T d B for every channel.

    place: channels of the first frequency; those of the next are `pitch` elements further.
    """
    name = f"winograd.image{_shape(spec)}c{spec.channels}p{pitch}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, I64, PTR], facts)
    source, row, pixel, target = function.args
    source.add_attribute("noalias")
    target.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, columns = spec.sides
    transforms = _transforms(b, spec, 2, facts)

    def channels_at(first: ir.Value, lanes: int) -> None:
        kind = vector_type(F32, lanes)
        at = [
            [b.add(first, b.add(b.mul(row, i64(i)), b.mul(pixel, i64(j)))) for j in range(columns)]
            for i in range(rows)
        ]
        tile = [[load(b, source, place, kind) for place in line] for line in at]
        for i, line in enumerate(_both(transforms, tile)):
            for j, value in enumerate(line):
                store(b, value, target, b.add(first, i64((i * columns + j) * pitch)))

    _in_vectors(b, spec.channels, facts.lanes("f32"), channels_at)
    b.ret_void()
    return function


def result_pass(
    module: ir.Module, facts: TargetFacts, spec: WinogradSpec, shape: tuple[int, int], pitch: int
) -> ir.Function:
    """void f(sums of a tile, across, place): A^T M A for `shape` = (vectors, lanes) columns.

    Sums of the next frequency are `pitch` elements further. place is dense [m[0]][across]
    [columns], with room for [m[0]][m[1]]: pixels of a row that do not exist are overwritten by the
    next row.
    """
    vectors, lanes = shape
    name = f"winograd.result{_shape(spec)}x{vectors}v{lanes}p{pitch}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, PTR], facts)
    sums, across, target = function.args
    sums.add_attribute("noalias")
    target.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    (rows, columns), width = spec.sides, vectors * lanes
    transforms = _transforms(b, spec, 0, facts)
    kind = vector_type(F32, lanes)
    for v in range(vectors):
        tile = [
            [load(b, sums, i64((i * columns + j) * pitch + v * lanes), kind)
             for j in range(columns)]
            for i in range(rows)
        ]  # fmt: skip
        for i, line in enumerate(_both(transforms, tile)):
            row = b.mul(across, i64(i * width))
            for j, value in enumerate(line):
                store(b, value, target, b.add(row, i64(j * width + v * lanes)))
    b.ret_void()
    return function


def copy_pass(module: ir.Module, facts: TargetFacts, spec: WinogradSpec) -> ir.Function:
    """void f(tile of A, row stride, pixel stride, rows, columns, place): a dense copy, in which
    pixels behind the last row and column are zero."""
    (high, wide), channels = spec.sides, spec.channels
    name = f"winograd.copy{high}x{wide}c{channels}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, I64, I64, I64, I64, PTR], facts)
    source, row, pixel, rows, columns, target = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    with for_range(b, i64(0), i64(high)) as i, for_range(b, i64(0), i64(wide)) as j:
        inside = b.and_(b.icmp_signed("<", i, rows), b.icmp_signed("<", j, columns))
        place = b.mul(b.add(b.mul(i, i64(wide)), j), i64(channels))
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


def _shape(spec: WinogradSpec) -> str:
    return f"{spec.m[0]}x{spec.m[1]}t{spec.taps[0]}x{spec.taps[1]}"


def _transforms(
    b: ir.IRBuilder, spec: WinogradSpec, which: int, facts: TargetFacts
) -> tuple[Transform, Transform]:
    """Those along columns and along rows. which: of the three matrices."""
    found = [matrices(m, taps)[which] for m, taps in zip(spec.m, spec.taps, strict=True)]
    return Transform(b, found[0], facts.fma), Transform(b, found[1], facts.fma)


def _both(
    transforms: tuple[Transform, Transform], tile: Sequence[Sequence[ir.Value]]
) -> list[list[ir.Value]]:
    """One transform along columns, then the other along rows."""
    columns, rows = transforms
    down = zip(*(columns.apply(column) for column in zip(*tile, strict=True)), strict=True)
    return [rows.apply(line) for line in down]


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
