"""Templates of ONNX nodes: each adds one, of a random form, to a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fuzz.onnx_model import Array, Model
from tests.fuzz.program import Misfit

Step = Callable[[Model], str]
SMOOTH = ("Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "Sin", "Cos", "Atan", "Elu", "Selu",
          "Celu", "HardSwish", "HardSigmoid", "Gelu", "Mish", "Exp", "LeakyRelu", "Sinh", "Cosh",
          "Asinh")  # fmt: skip
MOVED = ("Relu", "Neg", "Abs", "Identity", "Sign")
ROUNDED = ("Floor", "Ceil", "Round")
REDUCED = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
           "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")  # fmt: skip


def smooth(m: Model) -> str:
    name = m.choice(SMOOTH)
    attrs = {"alpha": 0.3} if name in ("Elu", "LeakyRelu", "Celu") and m.chance(0.5) else {}
    return m.add(name, m.floats(), **attrs)


def moved(m: Model) -> str:
    return m.add(m.choice(MOVED), m.floats(), exact=True)


def rounded(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == np.float32, exact=True)
    return m.add(m.choice(ROUNDED), x, exact=True)


def positive(m: Model) -> str:
    x = m.add("Add", m.add("Abs", m.floats()), m.constant(0.5, np.float32))
    return m.add(m.choice(("Sqrt", "Log", "Reciprocal")), x)


def mate(m: Model, x: str) -> str:
    """Something that broadcasts with x."""
    a = m.values[x]
    alike = [n for n in (*m.inputs, *m.made) if m.values[n].dtype == a.dtype
             and _broadcasts(m.values[n], a)]  # fmt: skip
    if alike and m.chance(0.5):
        return str(m.choice(alike))
    rank = m.number_in(0, a.ndim)
    shape = [d if m.chance(0.7) else 1 for d in a.shape[a.ndim - rank :]]
    return m.constant(m.numbers(*shape, dtype=a.dtype))


def _broadcasts(a: Array, b: Array) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a.shape[::-1], b.shape[::-1], strict=False))


def binary(m: Model) -> str:
    x = m.pick(lambda a: a.dtype.kind in "fi" and a.dtype.itemsize >= 4)
    y = mate(m, x)
    if m.chance(0.3):
        x, y = y, x
    integer = m.values[x].dtype.kind == "i"
    return m.add(m.choice(("Add", "Sub", "Mul", "Add", "Mul")), x, y, exact=integer)


def quotient(m: Model) -> str:
    x = m.floats()
    safe = m.add("Add", m.add("Abs", mate(m, x)), m.constant(1, np.float32))
    return m.add(m.choice(("Div", "Div", "Pow")), *((x, safe) if m.chance(0.8) else (safe, safe)))


def extremes(m: Model) -> str:
    x = m.floats()
    return m.add(m.choice(("Min", "Max")), x, mate(m, x), mate(m, x), exact=True)


def mean(m: Model) -> str:
    x = m.floats()
    return m.add(m.choice(("Sum", "Mean")), x, mate(m, x))


def compare(m: Model) -> str:
    x = m.pick(lambda a: a.dtype in (np.float32, np.int64, np.int32), exact=True)
    y = mate(m, x)
    if y not in m.exact:
        raise Misfit
    names = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
    return m.add(m.choice(names), x, y, exact=True)


def logic(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == bool)
    if m.chance(0.3):
        return m.add("Not", x, exact=True)
    return m.add(m.choice(("And", "Or", "Xor")), x, mate(m, x), exact=True)


def where(m: Model) -> str:
    c = m.pick(lambda a: a.dtype == bool)
    x = m.pick(lambda a: a.dtype == np.float32 and _broadcasts(a, m.values[c]))
    return m.add("Where", c, x, mate(m, x), exact=True)


def clip(m: Model) -> str:
    low = m.constant(-0.5, np.float32) if m.chance(0.7) else ""
    high = m.constant(1, np.float32) if m.chance(0.8) else ""
    return m.add("Clip", m.floats(), low, high, exact=True)


def cast(m: Model) -> str:
    x = m.pick(lambda a: a.dtype != np.float16, exact=True)
    return m.add("Cast", x, to=m.choice((1, 6, 7, 9, 11)), exact=True)


def reduce(m: Model) -> str:
    x = m.floats(1)
    name, rank = m.choice(REDUCED), m.values[x].ndim
    axes = [int(i) for i in m.rng.permutation(rank)[: m.number_in(1, rank)]]
    keep = m.number_in(0, 1)
    exact = name in ("ReduceMax", "ReduceMin")
    if m.values[x].size == 0:
        raise Misfit
    return m.add(name, x, m.constant(axes, np.int64), keepdims=keep, exact=exact)


def arg_reduce(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == np.float32 and a.ndim >= 1 and a.size > 0, exact=True)
    return m.add(m.choice(("ArgMax", "ArgMin")), x, axis=m.axis(x), keepdims=m.number_in(0, 1),
                 select_last_index=m.number_in(0, 1), exact=True)  # fmt: skip


def softmax(m: Model) -> str:
    x = m.floats(1)
    return m.add(m.choice(("Softmax", "LogSoftmax", "Softmax")), x, axis=m.axis(x))


def matmul(m: Model) -> str:
    x = m.floats(1)
    k = m.values[x].shape[-1]
    shape = (k, m.number_in(1, 9)) if m.chance(0.8) else (k,)
    return m.add("MatMul", x, m.constant(m.numbers(*shape)))


def gemm(m: Model) -> str:
    x = m.floats(2, 2)
    flip, turned = m.number_in(0, 1), m.number_in(0, 1)
    k, n = m.values[x].shape[0 if flip else 1], m.number_in(1, 9)
    w = m.constant(m.numbers(*((n, k) if turned else (k, n))))
    more = [m.constant(m.numbers(n))] if m.chance(0.6) else []
    return m.add("Gemm", x, w, *more, transA=flip, transB=turned, alpha=m.choice((1.0, 0.5)),
                 beta=m.choice((1.0, 0.25)))  # fmt: skip


def einsum(m: Model) -> str:
    x = m.floats(2, 3)
    last, rank = m.values[x].shape[-1], m.values[x].ndim
    letters = "abc"[:rank]
    equation = f"{letters},d{letters[-1]}->{letters[:-1]}d"
    return m.add("Einsum", x, m.constant(m.numbers(4, last)), equation=equation)


def conv(m: Model) -> str:
    x = m.floats(3, 4)
    channels, n = m.values[x].shape[1], m.values[x].ndim - 2
    groups = m.choice([g for g in (1, 1, 2, channels) if channels and channels % g == 0])
    kernel = [m.number_in(1, 3) for _ in range(n)]
    how = {"strides": [m.number_in(1, 2)] * n, "dilations": [m.choice((1, 1, 2))] * n}
    if m.chance(0.2):
        how = {"auto_pad": m.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))}  # type: ignore[dict-item]
    else:
        how["pads"] = [m.number_in(0, 1) for _ in range(2 * n)]
    if m.chance(0.25):
        w = m.constant(m.numbers(channels, m.number_in(1, 3), *kernel))
        return m.add("ConvTranspose", x, w, group=groups, **how)
    out = groups * m.number_in(1, 4)
    more = [m.constant(m.numbers(out))] if m.chance(0.5) else []
    return m.add("Conv", x, m.constant(m.numbers(out, channels // groups, *kernel)), *more,
                 group=groups, **how)  # fmt: skip


def pool(m: Model) -> str:
    x = m.floats(3, 4)
    n = m.values[x].ndim - 2
    kernel = [m.number_in(1, 3) for _ in range(n)]
    if any(k > d for k, d in zip(kernel, m.values[x].shape[2:], strict=True)):
        raise Misfit  # ONNX Runtime rounds towards zero there, ONNX down
    how = {"kernel_shape": kernel, "strides": [m.number_in(1, 2)] * n,
           "pads": [k // 2 for k in kernel * 2] if m.chance(0.4) else [0] * 2 * n,
           "ceil_mode": m.number_in(0, 1)}  # fmt: skip
    if m.chance(0.4):
        return m.add("AveragePool", x, count_include_pad=m.number_in(0, 1), **how)
    return m.add("MaxPool", x, **how, exact=True)


def whole_pool(m: Model) -> str:
    x = m.floats(3, 4)
    if m.values[x].size == 0:
        raise Misfit
    return m.add(m.choice(("GlobalAveragePool", "GlobalMaxPool")), x)


def norm(m: Model) -> str:
    x = m.floats(2, 4)
    shape = m.values[x].shape
    if 0 in shape:
        raise Misfit
    scale, bias = m.constant(m.numbers(shape[1])), m.constant(m.numbers(shape[1]))
    kind = m.number_in(0, 3)
    if kind == 0 and len(shape) > 2:
        return m.add("InstanceNormalization", x, scale, bias, epsilon=0.01)
    if kind == 1:
        scale = m.constant(m.numbers(shape[-1]))
        return m.add("LayerNormalization", x, scale, axis=-1, epsilon=0.01)
    if kind == 2 and len(shape) > 2:
        return m.add("LRN", x, size=m.choice((1, 3, 5)))
    spread = m.constant(np.abs(m.numbers(shape[1])) + np.float32(0.5))
    return m.add("BatchNormalization", x, scale, bias, m.constant(m.numbers(shape[1])), spread)


def transpose(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 2)
    perm = [int(i) for i in m.rng.permutation(m.values[x].ndim)]
    return m.add("Transpose", x, perm=perm, exact=True)


def reshape(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1 and a.size > 0)
    shape = list(m.values[x].shape)
    kind = m.number_in(0, 3)
    if kind == 0:
        return m.add("Flatten", x, axis=m.number_in(0, len(shape)), exact=True)
    if kind == 1 and len(shape) < 5:
        at = m.constant([m.number_in(0, len(shape))], np.int64)
        return m.add("Unsqueeze", x, at, exact=True)
    if kind == 2 and 1 in shape:
        return m.add("Squeeze", x, m.constant([shape.index(1)], np.int64), exact=True)
    at = m.number_in(0, len(shape) - 1)
    wanted = [0 if i < at else -1 if i == at else None for i in range(len(shape))]
    return m.add("Reshape", x, m.constant([d for d in wanted if d is not None], np.int64),
                 exact=True)  # fmt: skip


def concat(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1)
    axis, a = m.axis(x), m.values[x]
    shape = list(a.shape)
    shape[axis] = m.number_in(1, 4)
    parts = [x, m.constant(m.numbers(*shape, dtype=a.dtype)), x][: m.number_in(2, 3)]
    return m.add("Concat", *parts, axis=axis, exact=True)


def split(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1 and max(a.shape) >= 2)
    axis = int(np.argmax(m.values[x].shape))
    first = m.number_in(1, m.values[x].shape[axis] - 1)
    sizes = m.constant([first, m.values[x].shape[axis] - first], np.int64)
    return m.add("Split", x, sizes, axis=axis, count=2, exact=True)


def slice_(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1 and a.size > 0)
    axis = m.axis(x)
    size, step = m.values[x].shape[axis], m.choice((1, 1, 2, -1, -2))
    start = m.number_in(0, size - 1)
    end = m.choice((size, 9999, -1)) if step > 0 else m.choice((0, -9999))
    columns = [m.constant([v], np.int64) for v in (start, end, axis, step)]
    return m.add("Slice", x, *columns, exact=True)


def gather(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1 and a.size > 0)
    axis = m.axis(x)
    size = m.values[x].shape[axis]
    shape = [m.number_in(1, 3) for _ in range(m.number_in(0, 2))]
    index = m.constant(m.rng.integers(-size, size, shape), np.int64)
    return m.add("Gather", x, index, axis=axis, exact=True)


def gather_nd(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1 and a.size > 0)
    shape = m.values[x].shape
    depth = m.number_in(1, len(shape))
    rows = np.stack([m.rng.integers(0, d, 3) for d in shape[:depth]], -1)
    return m.add("GatherND", x, m.constant(rows, np.int64), exact=True)


def elements(m: Model) -> str:
    x = m.floats(1)
    shape = m.values[x].shape
    axis = m.number_in(0, len(shape) - 1)
    if 0 in shape:
        raise Misfit
    order = np.argsort(m.rng.random(shape), axis=axis)
    index = m.constant(order, np.int64)
    if m.chance(0.5):
        return m.add("GatherElements", x, index, axis=axis, exact=True)
    updates = m.constant(m.numbers(*shape))
    return m.add("ScatterElements", x, index, updates, axis=axis,
                 reduction=m.choice(("none", "add", "max")))  # fmt: skip


def scatter_nd(m: Model) -> str:
    x = m.floats(1)
    shape = m.values[x].shape
    if 0 in shape:
        raise Misfit
    rows = m.constant(m.rng.permutation(shape[0])[: m.number_in(1, shape[0]), None], np.int64)
    updates = m.constant(m.numbers(m.values[rows].shape[0], *shape[1:]))
    return m.add("ScatterND", x, rows, updates, reduction=m.choice(("none", "add")))


def pad(m: Model) -> str:
    x = m.floats(1, 4)
    n = m.values[x].ndim
    mode = m.choice(("constant", "edge", "reflect", "wrap"))
    pads = m.constant([m.number_in(0, 1) for _ in range(2 * n)], np.int64)
    more = [m.constant(0.5, np.float32)] if mode == "constant" and m.chance(0.5) else []
    return m.add("Pad", x, pads, *more, mode=mode, exact=True)


def tile(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1 and a.size < 500)
    n = m.values[x].ndim
    if m.chance(0.5):
        repeats = m.constant([m.number_in(1, 2) for _ in range(n)], np.int64)
        return m.add("Tile", x, repeats, exact=True)
    shape = [2 if d == 1 and m.chance(0.6) else d for d in m.values[x].shape]
    return m.add("Expand", x, m.constant(shape, np.int64), exact=True)


def shape(m: Model) -> str:
    """Shape arithmetic: the extents, a product with some, and a tensor of that shape."""
    x = m.pick(lambda a: a.ndim >= 1)
    extents = m.add("Shape", x, exact=True)
    if m.chance(0.5):
        return m.add("ConstantOfShape", extents)
    return m.add("Mul", extents, m.constant(2, np.int64), exact=True)


def cumulative(m: Model) -> str:
    x = m.floats(1)
    return m.add("CumSum", x, m.constant(m.axis(x), np.int64), exclusive=m.number_in(0, 1),
                 reverse=m.number_in(0, 1))  # fmt: skip


def top_k(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == np.float32 and a.ndim >= 1 and a.size > 0, exact=True)
    axis = m.axis(x)
    k = m.constant([m.number_in(1, m.values[x].shape[axis])], np.int64)
    return m.add("TopK", x, k, axis=axis, largest=m.number_in(0, 1), count=2, exact=True)


def non_zero(m: Model) -> str:
    x = m.pick(lambda a: a.ndim >= 1 and a.dtype in (np.float32, np.bool_), exact=True)
    return m.add("NonZero", x, exact=True)


def one_hot(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == np.int64 and a.ndim <= 2, exact=True)
    ends = m.constant([0, 1], np.float32)
    return m.add("OneHot", x, m.constant(5, np.int64), ends, axis=-1, exact=True)


def triangle(m: Model) -> str:
    x = m.floats(2)
    return m.add("Trilu", x, m.constant(m.number_in(-1, 1), np.int64), upper=m.number_in(0, 1),
                 exact=True)  # fmt: skip


def blocks(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == np.float32 and a.ndim == 4)
    mode = {"mode": m.choice(("DCR", "CRD"))}
    if m.chance(0.5):
        return m.add("DepthToSpace", x, blocksize=2, exact=True, **mode)
    return m.add("SpaceToDepth", x, blocksize=2, exact=True)


def resize(m: Model) -> str:
    x = m.floats(3, 4)
    scales = [1.0, 1.0, *(m.choice((1.0, 2.0, 0.5)) for _ in range(m.values[x].ndim - 2))]
    mode = m.choice(("nearest", "linear"))
    coordinates = ("half_pixel", "asymmetric", "align_corners")
    return m.add("Resize", x, "", m.constant(scales, np.float32), mode=mode,
                 coordinate_transformation_mode=m.choice(coordinates))  # fmt: skip


def quantized(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == np.float32, exact=True)
    scale, zero = m.constant(0.5, np.float32), m.constant(3, m.choice((np.uint8, np.int8)))
    q = m.add("QuantizeLinear", x, scale, zero, exact=True)
    return m.add("DequantizeLinear", q, scale, zero, exact=True) if m.chance(0.7) else q


def integer_product(m: Model) -> str:
    x = m.pick(lambda a: a.dtype == np.uint8 and a.ndim >= 2)
    w = m.constant(m.numbers(m.values[x].shape[-1], 5, dtype=np.int8))
    return m.add("MatMulInteger", x, w, m.constant(2, np.uint8), exact=True)


def slopes(m: Model) -> str:
    x = m.floats()
    shape_ = m.values[x].shape
    return m.add("PRelu", x, m.constant(m.numbers(*shape_[-1:])))


def recurrent(m: Model) -> str:
    x = m.floats(3, 3)
    name, hidden = m.choice(("LSTM", "GRU", "RNN")), m.number_in(1, 4)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name] * hidden
    ways = m.number_in(1, 2)
    w = m.constant(m.numbers(ways, gates, m.values[x].shape[2]) / 4)
    r = m.constant(m.numbers(ways, gates, hidden) / 4)
    more = [m.constant(m.numbers(ways, 2 * gates) / 4)] if m.chance(0.5) else []
    how = {"direction": "bidirectional" if ways == 2 else m.choice(("forward", "reverse"))}
    if name == "GRU":
        how["linear_before_reset"] = m.number_in(0, 1)
    return m.add(name, x, w, r, *more, hidden_size=hidden, count=2, **how)


STEPS: tuple[tuple[int, Step], ...] = (
    (6, smooth), (5, moved), (1, rounded), (3, positive), (8, binary), (3, quotient), (2, extremes),
    (1, mean), (2, compare), (1, logic), (2, where), (2, clip), (2, cast), (5, reduce),
    (1, arg_reduce), (3, softmax), (6, matmul), (3, gemm), (2, einsum), (5, conv), (3, pool),
    (1, whole_pool), (4, norm), (5, transpose), (6, reshape), (4, concat), (3, split), (5, slice_),
    (3, gather), (1, gather_nd), (2, elements), (1, scatter_nd), (3, pad), (3, tile), (2, shape),
    (2, cumulative), (1, top_k), (1, non_zero), (1, one_hot), (1, triangle), (1, blocks),
    (2, resize), (3, quantized), (1, integer_product), (1, slopes), (1, recurrent),
)  # fmt: skip
