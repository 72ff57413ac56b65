"""Steps with regions: choices and loops; bodies read values from outside, and views of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuvil.ir.dims import Dim, evaluate, symbol
from cuvil.ir.names import Block, Region, Value
from cuvil.ir.record import tensor_type
from cuvil.ops.control import loop_types
from tests.fuzz.program import Misfit, Program
from tests.fuzz.steps import SIMPLE, Step, choose, view_of


def _inner(p: Program, like: Value) -> Value:
    """A few steps inside a region that end in a value of the given type."""
    made = [like]
    for _ in range(p.number(1, 3)):
        try:
            made.append(choose(p, SIMPLE)(p))
        except Misfit:
            continue
        p.keep(made[-1], exact=False)
    if p.chance(0.3):
        made.append(_restored(p, p.choice(made)))
    same = [v for v in made if v.type == like.type]
    return same[-1] if p.chance(0.8) else same[0]


def _restored(p: Program, value: Value) -> Value:
    """A view, and the view of it that has the first shape again: a view of a view as a result."""
    try:
        flat = p.emit("reshape", value, dims=[tensor_type(value).size], exact=True)
        return p.emit("reshape", flat, dims=p.dims(value), exact=True)
    except Misfit:
        return value


def branch(p: Program) -> Value:
    """Two ways; what either yields may be a value from outside as it is, or a view of one."""
    cond = p.pick(lambda t: t.dtype.kind == "bool")
    if len(p.dims(cond)):
        cond = p.emit("reduce", cond, kind="any", axes=range(len(p.dims(cond))), exact=True)
    wanted = [p.pick() for _ in range(p.number(1, 2))]
    exact = all(v in p.exact for v in wanted)
    regions = []
    for _ in range(2):
        block = Block()
        yielded = p.inside(block, lambda: [_inner(p, v) for v in wanted])
        exact = exact and all(v in p.exact for v in yielded)
        regions.append(Region(block))
    types = [tensor_type(v) for v in wanted]
    results = p.b.emit_regions("if", [cond], types, regions)
    p.settle(results[0].owner)  # type: ignore[arg-type]
    if exact:
        p.exact.update(results)
    return p.choice(results)


def loop(p: Program) -> Value:
    """Carries one or two values for a few iterations and stacks a row of what is outside."""
    start = [p.pick(lambda t: t.rank <= 3) for _ in range(p.number(1, 2))]
    outer = p.pick(lambda t: t.rank >= 1)
    if p.chance(0.5):
        outer = view_of(p, outer)  # carried into the body: a view, of a view perhaps
    if not p.dims(outer):
        raise Misfit
    trip = _trip(p, outer)
    return _looped(p, start, outer, trip)


def _trip(p: Program, outer: Value) -> Dim:
    """As often as a known number, as a symbol says, or once for each row of a value."""
    symbols = p.module.graph.symbols()
    kind = p.number(0, 3)
    if kind == 0 and symbols and min(env[symbols[0]] for env in p.module.envs):
        return symbol(symbols[0])
    if kind >= 2 and p.dims(outer):
        first = p.dims(outer)[0]
        small = all(1 <= a.shape[0] <= 20 for a in p.arrays(outer))
        if small:
            return first
    return p.number(0, 3)


def _looped(p: Program, start: Sequence[Value], outer: Value, trip: Dim) -> Value:
    block = Block(arg_types=[v.type for v in start])
    name = p.fresh()
    stored = _stored(p, outer) if p.chance(0.4) else None
    for state in p.module.states:
        state.env = {**state.env, name: 0}

    def body() -> list[Value]:
        for arg, value in zip(block.args, start, strict=True):
            for state in p.module.states:
                state.values[arg] = state.values[value]
            p.keep(arg, exact=False)
        following = [_inner(p, arg) for arg in block.args]
        if len(following) == 2 and following[0].type == following[1].type and p.chance(0.5):
            following.reverse()
        row = _row(p, outer, trip, name) if stored is None else _stored(p, stored)
        return [*following, row]

    yielded = p.inside(block, body)
    types = [tensor_type(v) for v in start]
    results = p.b.emit_regions(
        "loop", start, loop_types(types, [tensor_type(yielded[-1])], trip), [Region(block)],
        trip=trip, symbol=name,
    )  # fmt: skip
    p.settle(results[0].owner)  # type: ignore[arg-type]
    return p.choice(results)


def _stored(p: Program, value: Value) -> Value:
    """Running totals of the negated value: two buffers, and nothing else reads either. In a body
    the first one may not take the place of what it reads outside."""
    axis = len(p.dims(value)) - 1
    opposite = p.emit("neg", value)
    return p.emit("cumulative", opposite, kind="sum", axis=axis, exclusive=False, reverse=False)


def _row(p: Program, outer: Value, trip: Dim, name: str) -> Value:
    """What an iteration adds: its own row of a value from outside, from either end, or all."""
    extents = [a.shape[0] for a in p.arrays(outer)]
    trips = [evaluate(trip, state.env) for state in p.module.states]
    if any(n > extent for n, extent in zip(trips, extents, strict=True)) or 0 in extents:
        return outer
    rank = len(p.dims(outer))
    first = symbol(name) if p.chance(0.7) else trip - 1 - symbol(name)
    if trip == 0:
        first = 0
    starts: list[Dim] = [first, *[0] * (rank - 1)]
    dims = [1, *p.dims(outer)[1:]]
    row = p.emit("slice", outer, starts=starts, steps=[1] * rank, dims=dims)
    if p.chance(0.5):
        row = p.emit("reshape", row, dims=dims[1:])
    if p.chance(0.3):
        return row
    try:
        return choose(p, SIMPLE)(p)
    except Misfit:
        return row


def early_loop(p: Program) -> Value:
    """Ends when a condition that it carries is false: while a counter is below a number."""
    start = p.pick(lambda t: t.rank <= 3)
    cond, count = p.const(np.asarray(True)), p.scalar(0, "i64")
    last = p.number(0, 4)
    types = [tensor_type(v) for v in (cond, count, start)]
    block = Block(arg_types=types)
    name = p.fresh()

    def body() -> list[Value]:
        for arg, value in zip(block.args, (cond, count, start), strict=True):
            for state in p.module.states:
                state.values[arg] = state.values[value]
        p.keep(block.args[2], exact=False)
        following = p.emit("add", block.args[1], p.scalar(1, "i64"))
        more = p.emit("lt", following, p.scalar(last, "i64"))
        return [more, following, _inner(p, block.args[2])]

    p.inside(block, body)
    results = p.b.emit_regions(
        "loop", [cond, count, start], types, [Region(block)], trip=5, symbol=name, early=True
    )
    p.settle(results[0].owner)  # type: ignore[arg-type]
    p.exact.update(results[:2])
    return results[2]


CONTROL: tuple[tuple[int, Step], ...] = ((4, branch), (4, loop), (1, early_loop))
