"""Images sampled at positions that data gives."""

from __future__ import annotations

from itertools import product as combinations

from cuvil.ir.dims import Dim
from cuvil.ops.compose.helpers import axis_in
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op

MODES = {"bilinear": "linear", "bicubic": "cubic", "linear": "linear", "cubic": "cubic"}
A = -0.75  # of the cubic kernel
MOST_TAPS = 256  # neighbours of a sample


@onnx_op("GridSample", since=16)
def grid_sample(
    cx: Cx,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Value:
    """x [N, C, ...] at positions grid [N, out..., axes], which run from -1 to 1, x first."""
    mode = MODES.get(mode, mode)
    if mode not in ("nearest", "linear", "cubic"):
        cx.bad(f"mode={mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        cx.bad(f"padding_mode={padding_mode!r}")
    n = cx.type(x).rank - 2
    if cx.type(grid).rank != n + 2 or cx.dims(grid)[-1] in (0, *range(n), n + 1) or n < 1:
        cx.bad(f"a grid of rank {cx.type(grid).rank} for {n} spatial axes")
    if 4**n > MOST_TAPS and mode == "cubic":
        cx.fail(f"cubic sampling of {n} axes is not supported")
    sampler = _Sampler(cx, x, grid, bool(align_corners), padding_mode)
    axes = [sampler.taps(k, mode) for k in range(n)]
    total = None
    for taps in combinations(*axes):
        value = sampler.pick([position for position, _ in taps])
        for _, weight in taps:
            value = value if weight is None else cx.b.mul(value, weight)
        total = value if total is None else cx.b.add(total, value)
    return cx.b.transpose(total, perm=[0, n + 1, *range(1, n + 1)])


class _Sampler:
    """x with channels last, its positions [N, out..., 1] by axis, and the padding rule."""

    def __init__(self, cx: Cx, x: Value, grid: Value, corners: bool, padding: str) -> None:
        self.cx, self.corners, self.padding = cx, corners, padding
        self.space = cx.dims(x)[2:]
        n = len(self.space)
        self.x = cx.b.transpose(x, perm=[0, *range(2, n + 2), 1])
        self.kind = cx.type(x).dtype.name
        self.places = [self._place(grid, n - 1 - k, dim) for k, dim in enumerate(self.space)]

    def number(self, value: float) -> Value:
        return self.cx.b.scalar(value, self.kind)

    def extent(self, dim: Dim) -> Value:
        """An extent as a float."""
        whole = self.cx.b.dims(dims=(dim,), shape=(), dtype="i64")
        return self.cx.b.cast(whole, to=self.kind)

    def _place(self, grid: Value, column: int, dim: Dim) -> Value:
        """Positions along one axis, in pixels."""
        b, dims = self.cx.b, self.cx.dims(grid)
        starts = [0] * (len(dims) - 1) + [column]
        part = b.slice(grid, starts=starts, steps=[1] * len(dims), dims=(*dims[:-1], 1))
        scaled, size = b.add(part, self.number(1)), self.extent(dim)
        if self.corners:
            return b.mul(scaled, b.mul(b.sub(size, self.number(1)), self.number(0.5)))
        return b.mul(b.sub(b.mul(scaled, size), self.number(1)), self.number(0.5))

    def taps(self, axis: int, mode: str) -> list[tuple[Value, Value]]:
        """(position, weight or None) of every neighbour along an axis."""
        b, at = self.cx.b, self.places[axis]
        if mode == "nearest":
            return [(b.round(at), None)]
        if mode == "linear" and self.padding != "zeros":
            at = self.inside(at, axis)
        low = b.floor(at)
        t = b.sub(at, low)
        if mode == "linear":
            return [(low, b.sub(self.number(1), t)), (b.add(low, self.number(1)), t)]
        offsets = (-1, 0, 1, 2)
        distances = [b.abs(b.sub(t, self.number(k))) for k in offsets]
        weights = [
            self.near(d) if k in (0, 1) else self.far(d)
            for k, d in zip(offsets, distances, strict=True)
        ]
        places = [b.add(low, self.number(k)) for k in offsets]
        return list(zip(places, weights, strict=True))

    def near(self, d: Value) -> Value:
        """The cubic kernel up to a distance of 1."""
        b = self.cx.b
        inner = b.sub(b.mul(d, self.number(A + 2)), self.number(A + 3))
        return b.add(b.mul(b.mul(inner, d), d), self.number(1))

    def far(self, d: Value) -> Value:
        """The cubic kernel from 1 to 2."""
        b = self.cx.b
        inner = b.mul(b.sub(d, self.number(5)), d)
        return b.mul(b.sub(b.mul(b.add(inner, self.number(8)), d), self.number(4)), self.number(A))

    def inside(self, at: Value, axis: int) -> Value:
        """Positions outside the image moved into it by the padding rule (zeros: left alone)."""
        b, size = self.cx.b, self.extent(self.space[axis])
        zero, last = self.number(0), b.sub(size, self.number(1))
        if self.padding == "reflection":
            low = 0.0 if self.corners else -0.5
            span = last if self.corners else size
            at = b.abs(b.sub(at, self.number(low)))
            rest = b.fmod(at, b.max(b.mul(span, self.number(2)), self.number(1)))
            at = b.add(b.select(b.gt(rest, span), b.sub(b.mul(span, self.number(2)), rest), rest),
                       self.number(low))  # fmt: skip
        return b.min(b.max(at, zero), last) if self.padding != "zeros" else at

    def pick(self, places: list[Value]) -> Value:
        """Elements at whole positions; zero outside where the padding rule says so."""
        cx, b = self.cx, self.cx.b
        indices, found = [], None
        for axis, place in enumerate(places):
            at = self.inside(place, axis)
            if self.padding == "zeros":
                last = b.sub(self.extent(self.space[axis]), self.number(1))
                hit = b.and_(b.ge(at, self.number(0)), b.le(at, last))
                found = hit if found is None else b.and_(found, hit)
                at = b.min(b.max(at, self.number(0)), last)
            indices.append(b.cast(at, to="i64"))
        joined = indices[0] if len(indices) == 1 else b.concat(*indices, axis=cx.type(at).rank - 1)
        value = b.gather_nd(self.x, joined, batch_dims=1)
        return value if found is None else b.select(found, value, self.number(0))


@onnx_op("TensorScatter", since=24)
def tensor_scatter(
    cx: Cx,
    past: Value,
    update: Value,
    write_indices: Value = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    """`update` written into a cache from a position of each batch entry on."""
    rank, dims = cx.type(past).rank, cx.dims(update)
    at = axis_in(cx, axis, rank)
    place = cx.b.iota(dims=[d if k == at else 1 for k, d in enumerate(dims)], axis=at)
    if write_indices is not None:
        start = cx.b.reshape(write_indices, dims=[dims[0], *[1] * (rank - 1)])
        place = cx.b.add(place, start)
    size = cx.b.dims(dims=(cx.dims(past)[at],), shape=(), dtype="i64")
    if mode == "circular":
        place = cx.b.mod(place, size)
    elif mode == "linear":  # a place before the cache is none, not one from the end
        place = cx.b.select(cx.b.lt(place, cx.b.scalar(0, "i64")), size, place)
    else:
        cx.bad(f"mode={mode!r}")
    return cx.b.scatter_elements(past, cx.b.broadcast(place, dims=dims), update, axis=at)
