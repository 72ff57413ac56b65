"""Steps of kernels with a body of their own: products, windows, attention, codes."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type
from tests.fuzz.program import Misfit, Program
from tests.fuzz.steps import Step, is_float


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
    b = p.choice(other) if other and p.chance(0.5) else p.constant(want, p.kind(x))
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
    bias = [p.constant([tensor_type(weights).dims[0]], p.kind(x))] if p.chance(0.4) else []
    result = p.emit(
        "conv", x, weights, *bias, strides=[p.choice((1, 1, 2)) for _ in range(n)],
        dilations=[p.choice((1, 1, 2)) for _ in range(n)],
        pads=[p.choice((0, 1, 1)) for _ in range(2 * n)], groups=groups, layout=layout,
    )  # fmt: skip
    if p.is_empty(x) or p.is_empty(result):
        raise Misfit  # a window over nothing is refused
    if p.chance(0.5):
        result = p.emit("relu", result)
    return result


def depthwise(p: Program) -> Value:
    """A kernel of its own for every channel."""
    x = p.pick(lambda t: 3 <= t.rank <= 4 and t.dtype.name == "f32" and isinstance(t.dims[-1], int))
    channels, n = int(p.dims(x)[-1]), len(p.dims(x)) - 2  # type: ignore[arg-type]
    weights = p.constant([channels, 1, *(p.choice((1, 2, 3)) for _ in range(n))], "f32")
    result = p.emit(
        "conv", x, weights, strides=[p.choice((1, 1, 2)) for _ in range(n)],
        dilations=[p.choice((1, 1, 2)) for _ in range(n)],
        pads=[p.choice((0, 1)) for _ in range(2 * n)], groups=channels, layout="channels_last",
    )  # fmt: skip
    if p.is_empty(x) or p.is_empty(result):
        raise Misfit
    return result


def conv_transpose(p: Program) -> Value:
    x = p.pick(lambda t: 3 <= t.rank <= 4 and t.dtype.name in ("f32", "f64") and t.is_static)
    if p.is_empty(x):
        raise Misfit
    channels, n = int(p.dims(x)[1]), len(p.dims(x)) - 2  # type: ignore[arg-type]
    groups = p.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    kernel = [p.choice((1, 2, 3)) for _ in range(n)]
    strides = [p.choice((1, 2, 2, 3)) for _ in range(n)]
    weights = p.constant([channels, p.choice((1, 2, 3)), *kernel], p.kind(x))
    result = p.emit(
        "conv_transpose", x, weights, strides=strides, dilations=[p.choice((1, 1, 2))] * n,
        pads=[p.choice((0, 0, 1)) for _ in range(2 * n)], groups=groups,
        output_padding=[p.number(0, s - 1) if p.chance(0.2) else 0 for s in strides],
    )  # fmt: skip
    if p.is_empty(result):
        raise Misfit
    return result


def _window(p: Program, layout: str) -> tuple[Value, dict[str, object]]:
    """An image and a window on it."""
    x = p.pick(lambda t: 3 <= t.rank <= 5 and t.dtype.name in ("f32", "f64") and t.is_static)
    n = len(p.dims(x)) - 2
    spatial = p.dims(x)[2:] if layout == "channels_first" else p.dims(x)[1:-1]
    kernel = [p.choice((1, 2, 3)) for _ in range(n)]
    strides = [p.choice((1, 2)) for _ in range(n)]
    pads = [p.choice((0, 0, k // 2)) for k in kernel * 2]
    wide = [p.choice((1, 1, 1, 2)) for _ in range(n)]
    out = [(int(d) + a + b - w * (k - 1) - 1) // s + 1 for d, a, b, k, s, w in  # type: ignore[arg-type]
           zip(spatial, pads[:n], pads[n:], kernel, strides, wide, strict=True)]  # fmt: skip
    if min(out) < 1 or 0 in p.dims(x):
        raise Misfit
    how = {"kernel": kernel, "strides": strides, "dilations": wide, "pads": pads, "out": out}
    return x, {**how, "layout": layout}


def pool(p: Program) -> Value:
    x, how = _window(p, p.choice(("channels_first", "channels_last")))
    kind = p.choice(("max", "max", "avg", "avg", "lp"))
    more = {"p": p.choice((1.0, 2.0, 3.0))} if kind == "lp" else {}
    return p.emit("pool", x, kind=kind, count_include_pad=p.chance(0.5), **how, **more,
                  exact=kind == "max")  # fmt: skip


def pool_argmax(p: Program) -> Value:
    x, how = _window(p, "channels_first")
    if x not in p.exact:
        raise Misfit
    best = p.emit("pool_argmax", x, **how, storage_order=p.number(0, 1), exact=True)
    return p.choice(best.owner.results)  # type: ignore[union-attr]


def attention(p: Program) -> Value:
    """As one op, perhaps masked, or from its parts."""
    q = p.pick(lambda t: 2 <= t.rank <= 4 and t.dtype.name == "f32")
    k = p.pick(lambda t: t.dtype.name == "f32" and t.rank == len(p.dims(q))
               and t.dims[:-2] == p.dims(q)[:-2] and t.dims[-1] == p.dims(q)[-1])  # fmt: skip
    if p.is_empty(k):
        raise Misfit
    scale, rank = p.choice((0.25, 0.5, 1.0)), len(p.dims(q))
    masks = _masks(p, [p.dims(q)[-2], p.dims(k)[-2]])
    if p.chance(0.5):
        fill = p.choice((-1e9, float("-inf")))
        return p.emit("attention", q, k, k, *masks, scale=scale, causal=p.chance(0.2), fill=fill)
    batch = "abc"[: rank - 2]
    scores = p.emit("contract", q, k, spec=f"{batch}mk,{batch}nk->{batch}mn")
    scores = p.emit("mul", scores, p.scalar(scale, "f32"))
    if masks and p.kind(masks[0]) == "f32":
        scores = p.emit("add", scores, masks[0])
    weights = p.emit("softmax", scores, axis=rank - 1)
    return p.emit("contract", weights, k, spec=f"{batch}mn,{batch}nk->{batch}mk")


def _masks(p: Program, dims: list[Dim]) -> list[Value]:
    """A mask of scores, or none."""
    if p.chance(0.5) or not all(isinstance(d, int) for d in dims):
        return []
    shape = [1 if p.chance(0.2) else d for d in dims]
    return [p.constant(shape, p.choice(("bool", "f32")))]


def resize(p: Program) -> Value:
    x = p.pick(lambda t: t.rank >= 2 and t.is_static and is_float(t) and 0 not in t.dims)
    axes = [len(p.dims(x)) - 2, len(p.dims(x)) - 1]
    dims = [int(d) for d in p.dims(x)]  # type: ignore[arg-type]
    scales = [p.choice((1, 2, 2, 3)) for _ in axes]
    for axis, s in zip(axes, scales, strict=True):
        dims[axis] *= s
    mode = p.choice(("nearest", "linear", "cubic"))
    return p.emit("resize", x, mode=mode, axes=axes, dims=dims,
                  scales=[float(s) for s in scales] if p.chance(0.7) else [],
                  nearest_mode=p.choice(("round_prefer_floor", "floor", "ceil")),
                  coordinate=p.choice(("half_pixel", "asymmetric", "align_corners",
                                       "pytorch_half_pixel")))  # fmt: skip


CODES = ("u8", "i8", "u16", "i16", "f8e4m3fn", "i4", "u4")


def quantize(p: Program) -> Value:
    """Codes with one scale or one for each place of the last axis."""
    x, to = p.pick_exact(lambda t: t.dtype.name == "f32"), p.choice(CODES)
    last = p.dims(x)[-1:] if p.chance(0.3) else ()
    scale = p.constant(last, "f32")
    scale = p.emit("add", p.emit("abs", scale, exact=True), p.scalar(0.25, "f32"), exact=True)
    zero = [] if to.startswith("f8") else [p.scalar(3 if to != "i8" else -3, to)]
    q = p.emit("quantize_linear", x, scale, *zero, to=to, exact=True)
    if p.chance(0.4):
        return q
    return p.emit("dequantize_linear", q, scale, *zero, exact=True)


def codes(p: Program) -> Value:
    """Codes of scale 1, the numbers that they stand for, or what a table has in their places."""
    if p.chance(0.5):
        x, zero = p.pick_exact(lambda t: t.dtype.name == "f32"), p.scalar(3, "f32")
        name, to = p.choice(("quantize", "fake_quantize")), p.choice(CODES[:4])
        return p.emit(name, x, zero, to=to, exact=True)
    x = p.pick_exact(lambda t: t.dtype.name in CODES[:2])
    return p.emit("lookup", x, p.constant((256,), p.choice(CODES[:2])), exact=True)


def determinant(p: Program) -> Value:
    x = p.pick(lambda t: t.rank >= 1 and t.dtype.name in ("f32", "f64"))
    size = p.number(1, 4)
    batch = [p.number(1, 3)] if p.chance(0.5) else []
    matrix = p.constant([*batch, size, size], p.kind(x))
    ends = p.emit("reduce", x, kind="max", axes=range(len(p.dims(x))), keepdims=False)
    return p.emit("determinant", p.emit("add", matrix, p.emit("tanh", ends)))


HEAVY: tuple[tuple[int, Step], ...] = (
    (12, contract), (6, product_of_two), (8, conv), (3, depthwise), (2, conv_transpose), (4, pool),
    (1, pool_argmax), (4, attention), (2, resize), (3, quantize), (1, codes),
    (1, determinant),
)  # fmt: skip
