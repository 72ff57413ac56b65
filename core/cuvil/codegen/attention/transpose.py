"""Rows of queries side by side: a panel as [element][query], transposed in registers."""

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.llvm_util import (
    F32,
    I32,
    address,
    for_range,
    i64,
    load,
    splat,
    store,
    vector,
)


def pack_queries(
    b: ir.IRBuilder,
    source: ir.Value,
    strides: tuple[ir.Value, ir.Value],
    rows: ir.Value,
    width: int,
    lanes: int,
    vectors: int,
    scale: float,
    target: ir.Value,
) -> None:
    """target[element * lanes * vectors + query] = scale * source[query, element].

    strides: of queries and of elements. rows: queries that exist, at least one; behind them the
    last one is repeated.
    """
    unit = isinstance(strides[1], ir.Constant) and strides[1].constant == 1
    whole = width - width % lanes if unit else 0
    last = b.sub(rows, i64(1))
    factor = splat(b, ir.Constant(F32, scale), lanes)
    for group in range(vectors):
        pointers = []
        for lane in range(lanes):
            nth = i64(group * lanes + lane)
            row = b.select(b.icmp_signed("<", nth, last), nth, last)
            pointers.append(address(b, source, b.mul(row, strides[0]), F32))

        def put(value: ir.Value, element: ir.Value, group: int = group) -> None:
            place = b.add(b.mul(element, i64(lanes * vectors)), i64(group * lanes))
            store(b, value if scale == 1.0 else b.fmul(value, factor), target, place)

        with for_range(b, i64(0), i64(whole), i64(lanes)) as first:
            loaded = [load(b, p, first, vector(F32, lanes)) for p in pointers]
            for i, value in enumerate(transposed(b, loaded)):
                put(value, b.add(first, i64(i)))
        with for_range(b, i64(whole), i64(width)) as element:
            at = b.mul(element, strides[1])
            put(gathered(b, [load(b, p, at, F32) for p in pointers]), element)


def gathered(b: ir.IRBuilder, scalars: Sequence[ir.Value]) -> ir.Value:
    """A vector of these scalars."""
    if len(scalars) == 1:
        return scalars[0]
    value: ir.Value = ir.Constant(vector(scalars[0].type, len(scalars)), ir.Undefined)
    for i, scalar in enumerate(scalars):
        value = b.insert_element(value, scalar, ir.Constant(I32, i))
    return value


def transposed(b: ir.IRBuilder, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of a square of vectors, whose number is a power of two.

    Squares of four within 128 bits first, by shuffles that stay there; then blocks change places.
    """
    lanes, values = len(rows), list(rows)
    if lanes >= 4:
        for i in range(0, lanes, 4):
            values[i : i + 4] = _fours(b, values[i : i + 4], lanes)
    step = 4 if lanes >= 4 else 1
    while step < lanes:
        for i in range(lanes):
            if not i & step:
                values[i], values[i | step] = _swapped(b, values[i], values[i | step], step, lanes)
        step *= 2
    return values


def _fours(b: ir.IRBuilder, rows: Sequence[ir.Value], lanes: int) -> list[ir.Value]:
    """Transposes every square of four among four vectors."""

    def pick(x: ir.Value, y: ir.Value, four: Sequence[int]) -> ir.Value:
        """four: lanes of x (0 to 3) and of y (4 to 7), the same in every group of four."""
        places = [g + i % 4 + lanes * (i // 4) for g in range(0, lanes, 4) for i in four]
        return _shuffle(b, x, y, places)

    low = [pick(rows[i], rows[i + 1], (0, 4, 1, 5)) for i in (0, 2)]
    high = [pick(rows[i], rows[i + 1], (2, 6, 3, 7)) for i in (0, 2)]
    return [
        pick(low[0], low[1], (0, 1, 4, 5)),
        pick(low[0], low[1], (2, 3, 6, 7)),
        pick(high[0], high[1], (0, 1, 4, 5)),
        pick(high[0], high[1], (2, 3, 6, 7)),
    ]


def _swapped(
    b: ir.IRBuilder, x: ir.Value, y: ir.Value, step: int, lanes: int
) -> tuple[ir.Value, ir.Value]:
    """Exchanges the blocks of `step` lanes that lie off the diagonal of two vectors."""
    first = [i if not i & step else lanes + i - step for i in range(lanes)]
    second = [i + step if not i & step else lanes + i for i in range(lanes)]
    return _shuffle(b, x, y, first), _shuffle(b, x, y, second)


def _shuffle(b: ir.IRBuilder, x: ir.Value, y: ir.Value, places: Sequence[int]) -> ir.Value:
    return b.shuffle_vector(x, y, ir.Constant(vector(I32, len(places)), list(places)))
