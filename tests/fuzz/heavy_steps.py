"""Steps with a body of their own: products, windows, attention, control flow."""

from __future__ import annotations

import numpy as np

from cuvil.ir.dims import Dim, symbol
from cuvil.ir.names import Block, Region, Value
from cuvil.ir.record import tensor_type
from cuvil.ops.control import loop_types
from tests.fuzz.found_steps import compressed
from tests.fuzz.program import Misfit, Program
from tests.fuzz.steps import SIMPLE, Step, is_float


def contract(p: Program) -> Value:
    """x by a constant or by another value; letters of x are summed, kept, or shared."""
    x = p.pick(lambda t: t.rank >= 1 and t.dtype.kind != "bool" and t.dtype.name != "f16")
    letters = "abcde"[: len(p.dims(x))]
    if len(letters) != len(p.dims(x)):
        raise Misfit
    extent: dict[str, Dim] = dict(zip(letters, p.dims(x), strict=True))
    known = [c for c in letters if isinstance(extent[c], int)]
    summed = {str(c) for c in p.rng.permutation(known)[: p.number(0, 2)]} if known else set()
    shared = {c for c in known if c not in summed and p.chance(0.15)}
    extent["n"], extent["m"] = p.extent(), p.choice((2, 3))
    own = list("nm"[: p.number(0, 2) if p.chance(0.3) else 1])
    of_b = [str(c) for c in p.rng.permutation([*summed, *shared, *own])]
    out = [str(c) for c in p.rng.permutation([*(c for c in letters if c not in summed), *own])]
    if p.chance(0.5):
        out = [c for c in letters if c not in summed] + own
    want = [extent[c] for c in of_b]
    other = [v for v in p.pickable if p.dims(v) == tuple(want) and p.kind(v) == p.kind(x)]
    b = p.choice(other) if other and p.chance(0.5) else p.constant(want, p.kind(x))  # type: ignore[arg-type]
    a_spec, b_spec, operands = letters, "".join(of_b), (x, b)
    if p.chance(0.3):
        a_spec, b_spec, operands = b_spec, a_spec, (b, x)
    integer = tensor_type(x).dtype.is_integer
    return p.emit("contract", *operands, spec=f"{a_spec},{b_spec}->{''.join(out)}", exact=integer)


def product_of_two(p: Program) -> Value:
    """x by its own transpose, or by another value that shares its last axis."""
    x = p.pick(lambda t: t.rank >= 2 and t.dtype.name in ("f32", "f64"))
    batch = "abc"[: len(p.dims(x)) - 2]
    if len(batch) + 2 != len(p.dims(x)):
        raise Misfit
    mate = p.pick(lambda t: t.rank == len(p.dims(x)) and t.dtype.name == p.kind(x)
                  and t.dims[:-2] == p.dims(x)[:-2] and t.dims[-1] == p.dims(x)[-1])  # fmt: skip
    return p.emit("contract", x, mate, spec=f"{batch}mk,{batch}nk->{batch}mn")


def conv(p: Program) -> Value:
    layout = p.choice(("channels_first", "channels_last"))
    x = p.pick(lambda t: 3 <= t.rank <= 5 and t.dtype.name in ("f32", "f64")
               and isinstance(t.dims[1 if layout == "channels_first" else -1], int))  # fmt: skip
    channels = int(p.dims(x)[1 if layout == "channels_first" else -1])  # type: ignore[arg-type]
    n = len(p.dims(x)) - 2
    groups = p.choice([g for g in (1, 1, 1, 2, channels) if channels and channels % g == 0])
    kernel = [p.choice((1, 1, 2, 3)) for _ in range(n)]
    weights = p.constant([groups * p.choice((1, 2, 3, 8)), channels // groups, *kernel], p.kind(x))
    bias = [p.constant([tensor_type(weights).dims[0]], p.kind(x))] if p.chance(0.4) else []  # type: ignore[list-item]
    result = p.emit(
        "conv", x, weights, *bias, strides=[p.choice((1, 1, 2)) for _ in range(n)],
        dilations=[p.choice((1, 1, 2)) for _ in range(n)],
        pads=[p.choice((0, 1, 1)) for _ in range(2 * n)], groups=groups, layout=layout,
    )  # fmt: skip
    if p.chance(0.5):
        result = p.emit("relu", result)
    return result


def pool(p: Program) -> Value:
    layout = p.choice(("channels_first", "channels_last"))
    x = p.pick(lambda t: 3 <= t.rank <= 5 and t.dtype.name in ("f32", "f64") and t.is_static)
    n = len(p.dims(x)) - 2
    spatial = p.dims(x)[2:] if layout == "channels_first" else p.dims(x)[1:-1]
    kernel = [p.choice((1, 2, 3)) for _ in range(n)]
    strides = [p.choice((1, 2)) for _ in range(n)]
    pads = [p.choice((0, 0, k // 2)) for k in kernel * 2]
    out = [(int(d) + a + b - k) // s + 1 for d, a, b, k, s in  # type: ignore[arg-type]
           zip(spatial, pads[:n], pads[n:], kernel, strides, strict=True)]  # fmt: skip
    if min(out) < 1 or 0 in p.dims(x):
        raise Misfit
    return p.emit("pool", x, kind=p.choice(("max", "avg")), kernel=kernel, strides=strides,
                  dilations=[1] * n, pads=pads, out=out, layout=layout,
                  count_include_pad=p.chance(0.5))  # fmt: skip


def attention(p: Program) -> Value:
    q = p.pick(lambda t: 2 <= t.rank <= 4 and t.dtype.name == "f32")
    k = p.pick(lambda t: t.dtype.name == "f32" and t.rank == len(p.dims(q))
               and t.dims[:-2] == p.dims(q)[:-2] and t.dims[-1] == p.dims(q)[-1])  # fmt: skip
    if 0 in p.dims(k):
        raise Misfit
    if p.chance(0.5):
        return p.emit("attention", q, k, k, scale=0.25, causal=p.chance(0.2))
    batch = "abc"[: len(p.dims(q)) - 2]
    scores = p.emit("contract", q, k, spec=f"{batch}mk,{batch}nk->{batch}mn")
    scores = p.emit("mul", scores, p.scalar(0.25, "f32"))
    weights = p.emit("softmax", scores, axis=len(p.dims(q)) - 1)
    return p.emit("contract", weights, k, spec=f"{batch}mn,{batch}nk->{batch}mk")


def scatter(p: Program) -> Value:
    x = p.pick(lambda t: t.rank >= 1 and t.is_static and t.dtype.kind != "bool"
               and 0 not in t.dims)  # fmt: skip
    axis = p.number(0, len(p.dims(x)) - 1)
    extent = int(p.dims(x)[axis])  # type: ignore[arg-type]
    shape = [extent if i == axis else p.number(1, int(d)) for i, d in enumerate(p.dims(x))]  # type: ignore[arg-type]
    order = np.argsort(p.rng.random(shape), axis=axis)  # no index twice
    index = p.b.const(order.astype(np.int64))
    p.state.step(index.owner)
    p.exact.add(index)
    updates = p.constant(shape, p.kind(x))
    how = p.choice(("none", "add", "max"))
    return p.emit("scatter_elements", x, index, updates, axis=axis, reduction=how,
                  exact=how != "add" or tensor_type(x).dtype.is_integer)  # fmt: skip


def resize(p: Program) -> Value:
    x = p.pick(lambda t: t.rank >= 2 and t.is_static and is_float(t) and 0 not in t.dims)
    axes = [len(p.dims(x)) - 2, len(p.dims(x)) - 1]
    dims = [int(d) for d in p.dims(x)]  # type: ignore[arg-type]
    scales = [p.choice((1, 2, 2, 3)) for _ in axes]
    for axis, s in zip(axes, scales, strict=True):
        dims[axis] *= s
    return p.emit("resize", x, mode=p.choice(("nearest", "linear")), axes=axes, dims=dims,
                  scales=[float(s) for s in scales],
                  coordinate=p.choice(("half_pixel", "asymmetric", "align_corners")))  # fmt: skip


def quantize(p: Program) -> Value:
    x = p.pick_exact(lambda t: t.dtype.name == "f32")
    scale, zero = p.scalar(0.5, "f32"), p.scalar(3, "u8")
    q = p.emit("quantize_linear", x, scale, zero, to="u8", exact=True)
    return p.emit("dequantize_linear", q, scale, zero, exact=True) if p.chance(0.6) else q


def _inner(p: Program, like: Value) -> Value:
    """A few steps inside a region that end in a value of the given type."""
    made = [like]
    for _ in range(p.number(1, 3)):
        try:
            made.append(_step(p, SIMPLE))
        except Misfit:
            continue
        p.keep(made[-1], exact=False)
    same = [v for v in made if v.type == like.type]
    return same[-1] if p.chance(0.8) else same[0]


def _step(p: Program, table: tuple[tuple[int, Step], ...]) -> Value:
    weights = np.array([w for w, _ in table], np.float64)
    return table[int(p.rng.choice(len(table), p=weights / weights.sum()))][1](p)


def branch(p: Program) -> Value:
    cond = p.pick(lambda t: t.dtype.kind == "bool")
    if len(p.dims(cond)):
        cond = p.emit("reduce", cond, kind="any", axes=range(len(p.dims(cond))), exact=True)
    wanted = [p.pick() for _ in range(p.number(1, 2))]
    regions = []
    for _ in range(2):
        block = Block()
        p.inside(block, lambda: [_inner(p, v) for v in wanted])
        regions.append(Region(block))
    types = [tensor_type(v) for v in wanted]
    results = p.b.emit_regions("if", [cond], types, regions)
    p.settle(results[0].owner)
    return p.choice(results)


def loop(p: Program) -> Value:
    """Carries one or two values for a few iterations and stacks one."""
    start = [p.pick(lambda t: t.rank <= 3) for _ in range(p.number(1, 2))]
    trip: Dim = p.number(0, 3)
    if p.chance(0.3) and p.graph is not None and p.graph.symbols():
        trip = symbol(p.choice(p.graph.symbols()))
    block = Block(arg_types=[v.type for v in start])
    name = p.fresh()
    p.state.env = {**p.state.env, name: 0}  # type: ignore[dict-item]

    def body() -> list[Value]:
        for arg, value in zip(block.args, start, strict=True):
            p.state.values[arg] = p.array(value)
            p.keep(arg, exact=False)
        following = [_inner(p, arg) for arg in block.args]
        if len(following) == 2 and following[0].type == following[1].type and p.chance(0.5):
            following.reverse()
        row = p.pick(lambda t: t.rank >= 1 and t.is_static and t.dims[0] != 0 and t.dims[0] >= 3)  # type: ignore[operator]
        rank = len(p.dims(row))
        if isinstance(trip, int):
            starts: list[Dim] = [symbol(name), *[0] * (rank - 1)]
            dims = [1, *p.dims(row)[1:]]
            row = p.emit("slice", row, starts=starts, steps=[1] * rank, dims=dims)
        return [*following, row]

    yielded = p.inside(block, body)
    types = [tensor_type(v) for v in start]
    results = p.b.emit_regions(
        "loop", start, loop_types(types, [tensor_type(yielded[-1])], trip), [Region(block)],
        trip=trip, symbol=name,
    )  # fmt: skip
    p.settle(results[0].owner)
    return p.choice(results)


HEAVY: tuple[tuple[int, Step], ...] = (
    (12, contract), (6, product_of_two), (8, conv), (3, pool), (3, attention), (2, scatter),
    (2, resize), (2, quantize), (3, branch), (3, loop), (3, compressed),
)  # fmt: skip
ALL = (*SIMPLE, *HEAVY)


def step(p: Program) -> Value:
    """One random step; Misfit where it does not fit."""
    return _step(p, ALL)
