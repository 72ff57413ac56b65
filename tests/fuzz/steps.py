"""Steps of random programs: each adds one primitive, or a chain that the rewriter knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cuvil.ir.dims import Dim, product
from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from tests.fuzz.program import FLOATS, INTS, Misfit, Program

Step = Callable[[Program], Value]
SMOOTH = ("tanh", "sigmoid", "erf", "gelu", "gelu_tanh", "silu", "softplus", "mish", "softsign",
          "elu", "selu", "celu", "sin", "cos", "atan", "hardswish", "hardsigmoid")  # fmt: skip
MOVING = ("relu", "neg", "abs", "identity")


def is_float(t: TensorType) -> bool:
    return t.dtype.is_float


def is_number(t: TensorType) -> bool:
    return t.dtype.kind != "bool"


def has_axes(rank: int) -> Callable[[TensorType], bool]:
    return lambda t: t.rank >= rank


def unary(p: Program) -> Value:
    if p.chance(0.4):
        return p.emit(p.choice(MOVING[: 1 if p.chance(0.5) else 4]), p.pick(_signed), exact=True)
    return p.emit(p.choice(SMOOTH), p.pick(is_float))


def _signed(t: TensorType) -> bool:
    return t.dtype.is_signed


def rounding(p: Program) -> Value:
    name = p.choice(("floor", "ceil", "round", "trunc", "sign"))
    return p.emit(name, p.pick_exact(is_float), exact=True)


def guarded_math(p: Program) -> Value:
    """Functions of positive numbers."""
    x = p.pick(is_float)
    positive = p.emit("add", p.emit("abs", x), p.scalar(0.5, p.kind(x)))
    return p.emit(p.choice(("sqrt", "log", "log1p", "reciprocal", "rsqrt")), positive)


def binary(p: Program) -> Value:
    x = p.pick(is_number)
    y, name = p.mate(x), p.choice(("add", "add", "sub", "mul", "mul", "min", "max"))
    if p.chance(0.3):
        x, y = y, x
    moving = name in ("min", "max") or tensor_type(x).dtype.is_integer
    return p.emit(name, x, y, exact=moving)


def quotient(p: Program) -> Value:
    x = p.pick(is_number)
    y = p.mate(x)
    if tensor_type(x).dtype.is_integer:
        return p.emit(p.choice(("div", "mod", "fmod")), x, y, exact=True)
    if x in p.exact and y in p.exact and p.chance(0.4):
        far = p.emit("add", p.emit("abs", y, exact=True), p.scalar(0.5, p.kind(x)), exact=True)
        y = p.emit("neg", far, exact=True) if p.chance(0.5) else far
        return p.emit(p.choice(("mod", "fmod")), x, y, exact=True)
    if p.chance(0.3):
        return p.emit("div", x, p.scalar(p.choice((2.0, 3.0, -0.25)), p.kind(x)))
    safe = p.emit("add", p.emit("abs", y), p.scalar(1.0, p.kind(x)))
    return p.emit("div", x, safe)


def logic(p: Program) -> Value:
    x = p.pick(lambda t: not t.dtype.is_float)
    if p.chance(0.2):
        return p.emit("not", x, exact=True)
    return p.emit(p.choice(("and", "or", "xor")), x, p.mate(x), exact=True)


def compare(p: Program) -> Value:
    x = p.pick_exact(is_number)
    y = p.mate(x)
    if y not in p.exact:
        raise Misfit
    return p.emit(p.choice(("eq", "ne", "lt", "le", "gt", "ge")), x, y, exact=True)


def select(p: Program) -> Value:
    cond = p.pick(lambda t: t.dtype.kind == "bool")
    x = p.pick(lambda t: _fits(t, tensor_type(cond)))
    return p.emit("select", cond, x, p.mate(x), exact=True)


def _fits(a: TensorType, b: TensorType) -> bool:
    pairs = zip(reversed(a.dims), reversed(b.dims), strict=False)
    return all(x == y or x == 1 or y == 1 for x, y in pairs)


def cast(p: Program) -> Value:
    if p.chance(0.5):
        return p.emit("cast", p.pick(is_float), to=p.choice(FLOATS))
    x = p.pick_exact()
    return p.emit("cast", x, to=p.choice((*FLOATS, *INTS, "bool")), exact=True)


def _some_axes(p: Program, rank: int, least: int = 1) -> list[int]:
    count = p.number(least, max(least, rank))
    return sorted(int(i) for i in p.rng.permutation(rank)[:count])


def transpose(p: Program) -> Value:
    x = p.pick(has_axes(2))
    return p.emit(
        "transpose", x, perm=[int(i) for i in p.rng.permutation(len(p.dims(x)))], exact=True
    )


def reshape(p: Program) -> Value:
    x = p.pick()
    dims: list[Dim] = list(p.dims(x))
    for _ in range(p.number(1, 3)):
        at = p.number(0, len(dims))
        how = p.number(0, 3)
        if how == 0:
            dims.insert(at, 1)
        elif how == 1 and at + 1 < len(dims):
            dims[at : at + 2] = [dims[at] * dims[at + 1]]
        elif how == 2 and at < len(dims):
            dims[at : at + 1] = _split(p, dims[at])
        elif at < len(dims) and dims[at] == 1:
            del dims[at]
    return p.emit(
        "reshape", x, dims=dims[:6] if product(dims[:6]) == product(dims) else dims, exact=True
    )


def _split(p: Program, dim: Dim) -> list[Dim]:
    if isinstance(dim, int) and dim > 0:
        part = p.choice([k for k in range(1, dim + 1) if dim % k == 0])
        return [part, dim // part]
    return [1, dim]


def slice_(p: Program) -> Value:
    x = p.pick(has_axes(1))
    starts, steps, dims = [], [], []
    for dim in p.dims(x):
        if not isinstance(dim, int):
            cut = p.number(0, 1) if p.chance(0.3) else 0
            backwards = p.chance(0.2)
            starts.append(dim - 1 if backwards else 0)
            steps.append(-1 if backwards else 1)
            dims.append(dim - cut)
            continue
        step = p.choice((1, 1, 1, 2, 3, -1, -2))
        first = p.number(0, max(dim - 1, 0))
        room = -(-(dim - first) // step) if step > 0 else -(-(first + 1) // -step)
        starts.append(first)
        steps.append(step)
        dims.append(min(p.number(0 if p.chance(0.05) else 1, room), room) if dim else 0)
    return p.emit("slice", x, starts=starts, steps=steps, dims=dims, exact=True)


def pad(p: Program) -> Value:
    x = p.pick(has_axes(1))
    mode = p.choice(("constant", "constant", "reflect", "edge", "wrap"))
    if mode != "constant" and any(d == 0 or not isinstance(d, int) for d in p.dims(x)):
        mode = "constant"
    low, high = (
        [p.number(-1 if isinstance(d, int) else 0, 2) if p.chance(0.6) else 0 for d in p.dims(x)]
        for _ in "lh"
    )
    fill = p.constant((), p.kind(x))
    return p.emit("pad", x, fill, low=low, high=high, mode=mode, exact=True)


def concat(p: Program) -> Value:
    x = p.pick(has_axes(1))
    mine = tensor_type(x)
    axis = p.number(0, mine.rank - 1)

    def alike(t: TensorType) -> bool:
        return (
            t.rank == mine.rank
            and t.dtype == mine.dtype
            and all(
                i == axis or a == b for i, (a, b) in enumerate(zip(t.dims, mine.dims, strict=True))
            )
        )

    parts = [x] + [p.pick(alike) for _ in range(p.number(0, 2))]
    if p.chance(0.3) and mine.is_static:
        shape = [p.extent() if i == axis else d for i, d in enumerate(mine.dims)]
        parts.insert(p.number(0, 1), p.constant(shape, p.kind(x)))
    return p.emit("concat", *parts, axis=axis, exact=True)


def broadcast(p: Program) -> Value:
    x = p.pick()
    dims = [p.choice((2, 3, 5)) if d == 1 and p.chance(0.7) else d for d in p.dims(x)]
    if p.chance(0.4) and len(dims) < 5:
        dims.insert(0, p.choice((1, 2, 3)))
    return p.emit("broadcast", x, dims=dims, exact=True)


def gather(p: Program) -> Value:
    x = p.pick(lambda t: any(isinstance(d, int) and d > 0 for d in t.dims))
    axis = p.choice([i for i, d in enumerate(p.dims(x)) if isinstance(d, int) and d > 0])
    extent = int(p.dims(x)[axis])  # type: ignore[arg-type]
    shape = [p.extent() for _ in range(p.number(0, 2))]
    array = np.asarray(p.rng.integers(-extent, extent, shape))
    index = p.const(array.astype(p.choice((np.int32, np.int64))))
    return p.emit("gather", x, index, axis=axis, exact=True)


def reduce(p: Program) -> Value:
    x = p.pick(has_axes(1))
    axes = _some_axes(p, len(p.dims(x)))
    kind = tensor_type(x).dtype
    names = ("any", "all") if kind.kind == "bool" else ("sum", "mean", "max", "min", "prod")
    name = p.choice(names)
    if name in ("max", "min") and kind.is_float and _maybe_empty(p, x, axes):
        raise Misfit  # infinite
    exact = kind.is_integer or name not in ("sum", "mean", "prod")
    return p.emit("reduce", x, kind=name, axes=axes, keepdims=p.chance(0.5), exact=exact)


def reductions(p: Program) -> Value:
    """Two in a row, of one kind or of two."""
    x = p.pick(lambda t: t.rank >= 2 and is_number(t))
    if p.is_empty(x):
        raise Misfit
    kinds = ("sum", "mean", "max", "min")
    first, second = p.choice(kinds), p.choice(kinds)
    axes = _some_axes(p, len(p.dims(x)))
    x = p.emit("reduce", x, kind=first, axes=axes[:1], keepdims=True)
    other = p.number(0, len(p.dims(x)) - 1)
    return p.emit("reduce", x, kind=second if p.chance(0.5) else first, axes=[other],
                  keepdims=p.chance(0.5))  # fmt: skip


def _maybe_empty(p: Program, x: Value, axes: list[int]) -> bool:
    return any(a.shape[i] == 0 for a in p.arrays(x) for i in axes)


def arg_reduce(p: Program) -> Value:
    x = p.pick_exact(lambda t: is_number(t) and t.rank >= 1)
    axis = p.number(0, len(p.dims(x)) - 1)
    if _maybe_empty(p, x, [axis]):
        raise Misfit
    return p.emit("arg_reduce", x, kind=p.choice(("max", "min")), axis=axis,
                  keepdims=p.chance(0.5), last=p.chance(0.3), exact=True)  # fmt: skip


def norm(p: Program) -> Value:
    x = p.pick(lambda t: t.dtype.name in ("f32", "f64") and t.rank >= 1)
    axis = p.number(0, len(p.dims(x)) - 1)
    if _maybe_empty(p, x, list(range(axis, len(p.dims(x))))):
        raise Misfit
    name = p.choice(("softmax", "log_softmax", "layer_norm", "rms_norm"))
    if "soft" in name:
        return p.emit(name, x, axis=axis)
    inner = list(p.dims(x)[axis:])
    extra = []
    if p.chance(0.6) and all(isinstance(d, int) for d in inner):
        count = 2 if name == "layer_norm" and p.chance(0.6) else 1
        extra = [p.constant(inner, p.kind(x)) for _ in range(count)]
    return p.emit(name, x, *extra, axis=axis, epsilon=0.01)


def long_norm(p: Program) -> Value:
    """Layer norm or softmax from its parts, as exporters write them."""
    x = p.pick(lambda t: t.dtype.name == "f32" and t.rank >= 1)
    last = len(p.dims(x)) - 1
    if _maybe_empty(p, x, [last]):
        raise Misfit
    how = {"axes": [last], "keepdims": True}
    if p.chance(0.5):
        e = p.emit("exp", p.emit("sub", x, p.emit("reduce", x, kind="max", **how)))
        return p.emit("div", e, p.emit("reduce", e, kind="sum", **how))
    centred = p.emit("sub", x, p.emit("reduce", x, kind="mean", **how))
    square = p.emit("mul", centred, centred)
    variance = p.emit("reduce", square, kind="mean", **how)
    deviation = p.emit("sqrt", p.emit("add", variance, p.scalar(0.01, "f32")))
    return p.emit("div", centred, deviation)


def cumulative(p: Program) -> Value:
    x = p.pick(lambda t: t.rank >= 1 and is_number(t))
    return p.emit("cumulative", x, kind=p.choice(("sum", "sum", "prod")),
                  axis=p.number(0, len(p.dims(x)) - 1), exclusive=p.chance(0.3),
                  reverse=p.chance(0.3), exact=tensor_type(x).dtype.is_integer)  # fmt: skip


def top_k(p: Program) -> Value:
    x = p.pick_exact(lambda t: t.rank >= 1 and is_number(t))
    axis = p.number(0, len(p.dims(x)) - 1)
    extent = p.dims(x)[axis]
    if not isinstance(extent, int):
        raise Misfit
    k = p.number(0 if p.chance(0.1) else min(1, extent), extent)
    values = p.emit("top_k", x, axis=axis, k=k, largest=p.chance(0.5), exact=True)
    return p.choice(values.owner.results)


def iota(p: Program) -> Value:
    x = p.pick(has_axes(1))
    return p.emit(
        "iota",
        dims=p.dims(x),
        axis=p.number(0, len(p.dims(x)) - 1),
        dtype=p.choice(INTS[:2]),
        exact=True,
    )


def views(p: Program) -> Value:
    """Views of a view."""
    return view_of(p, p.pick(has_axes(1)))


def view_of(p: Program, value: Value) -> Value:
    """One to three views in a row."""
    known = p.pickable
    try:
        for _ in range(p.number(1, 3)):
            p.pickable = [value]
            value = p.choice((transpose, reshape, slice_, slice_))(p)
    except Misfit:
        pass
    finally:
        p.pickable = known
    return value


def choose(p: Program, table: Sequence[tuple[int, Step]]) -> Step:
    """A row of a table, by its weight."""
    weights = np.array([w for w, _ in table], np.float64)
    return table[int(p.rng.choice(len(table), p=weights / weights.sum()))][1]


SIMPLE: tuple[tuple[int, Step], ...] = (
    (10, unary), (1, rounding), (3, guarded_math), (12, binary), (3, quotient), (2, logic),
    (2, compare), (3, select), (3, cast), (6, transpose), (7, reshape), (6, slice_), (4, pad),
    (5, concat), (3, broadcast), (3, gather), (6, reduce), (2, reductions), (1, arg_reduce),
    (4, norm), (3, long_norm), (2, cumulative), (1, top_k), (1, iota), (4, views),
)  # fmt: skip
