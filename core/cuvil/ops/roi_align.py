"""Regions of images resampled to one size: RoiAlign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import SymDim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.gather import bounded_index
from cuvil.ops.lowering import ElementCx, clamp, wide

MOST_SAMPLES = 4096  # along one axis of a part of a region: more would take hours
_FLOATS = ("f16", "bf16", "f32", "f64")


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    fits = [x.rank for x in t] == [4, 2, 1] and t[1].dtype == t[0].dtype
    fits = fits and (t[1].dims[1] == 4 or isinstance(t[1].dims[1], SymDim))
    if not fits or t[0].dtype.name not in _FLOATS or t[2].dtype.name not in ("i32", "i64"):
        raise ValueError(f"roi_align takes images, regions and their images, not {shapes(t)}")
    sound = 0 <= a.samples <= MOST_SAMPLES and min(a.height, a.width) >= 1
    if a.mode not in ("avg", "max") or not sound:
        raise ValueError(f"roi_align: mode {a.mode}, {a.height} by {a.width}, {a.samples} samples")
    return [t[0].with_dims((t[1].dims[0], t[0].dims[1], a.height, a.width))]


def _axis(at: float, extent: int) -> list[tuple[int, float]] | None:
    """The two pixels beside a position with their shares; None outside of the image."""
    if at < -1 or at > extent:
        return None
    at = max(at, 0.0)
    low = int(at)
    if low >= extent - 1:
        return [(extent - 1, 1.0), (extent - 1, 0.0)]
    return [(low, 1 - (at - low)), (low + 1, at - low)]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    images, regions, which = wide(x[0]), wide(x[1]), x[2]
    out = np.zeros((len(regions), images.shape[1], a.height, a.width), images.dtype)
    for r, region in enumerate(regions):
        x1, y1, x2, y2 = region * a.scale - a.offset
        size = [max(v, a.least) for v in (y2 - y1, x2 - x1)]
        bins = size[0] / a.height, size[1] / a.width
        grid = [a.samples or math.ceil(v) for v in bins]
        for row, column in np.ndindex(a.height, a.width):
            start = y1 + row * bins[0], x1 + column * bins[1]
            values = []
            for i, j in np.ndindex(*grid):
                steps = [(k + 0.5) * v / n for k, v, n in zip((i, j), bins, grid, strict=True)]
                ys, xs = (
                    _axis(s + step, n)
                    for s, step, n in zip(start, steps, images.shape[2:], strict=True)
                )
                if ys is not None and xs is not None:
                    image = images[which[r]]
                    values.append([p * q * image[:, y, z] for (y, p), (z, q) in product(ys, xs)])
            if a.mode == "avg":
                total = sum((sum(v) for v in values), np.zeros(images.shape[1]))
                out[r, :, row, column] = total / max(math.prod(grid), 1)
            elif values:
                missing = len(values) < math.prod(grid)
                best = np.max(np.concatenate(values).reshape(-1, images.shape[1]), axis=0)
                out[r, :, row, column] = np.maximum(best, 0) if missing else best
    return [out.astype(x[0].dtype)]


class _Region:
    """Scalars of one region while its elements are built."""

    def __init__(self, cx: ElementCx, region: Index) -> None:
        self.cx, self.b = cx, cx.b
        self.kind = cx.operand_types[0].dtype.compute.name
        coordinates = [self.element(1, (region, k)) for k in range(4)]
        self.corners = [
            self.sub(self.mul(v, self.number(cx.attrs.scale)), self.number(cx.attrs.offset))
            for v in coordinates
        ]

    def element(self, i: int, index: Sequence[Index]) -> Value:
        return self.b.cast(self.cx.operand(i, index), self.kind)

    def number(self, value: float) -> Value:
        return self.b.const(value, self.kind)

    def of(self, index: Index) -> Value:
        return self.b.cast(self.b.from_index(index, "i64"), self.kind)

    def sub(self, x: Value, y: Value) -> Value:
        return self.b.scalar("sub", x, y)

    def add(self, x: Value, y: Value) -> Value:
        return self.b.scalar("add", x, y)

    def mul(self, x: Value, y: Value) -> Value:
        return self.b.scalar("mul", x, y)

    def bin(self, axis: int, place: Index) -> tuple[Value, Value, Index]:
        """(where the bin begins, its extent, the number of samples) along y (0) or x (1)."""
        low, high = self.corners[1 - axis], self.corners[3 - axis]
        size = self.b.scalar("max", self.sub(high, low), self.number(self.cx.attrs.least))
        count = (self.cx.attrs.height, self.cx.attrs.width)[axis]
        extent = self.b.scalar("div", size, self.number(count))
        samples: Index = self.cx.attrs.samples
        if not samples:
            samples = self.b.to_index(self.b.cast(self.b.scalar("ceil", extent), "i64"))
            samples = self.b.index("max", samples, 0)
        return self.add(low, self.mul(self.of(place), extent)), extent, samples

    def tap(
        self, start: Value, extent: Value, samples: Index, step: Index, axis: int
    ) -> tuple[Value, list[tuple[Index, Value]]]:
        """(whether a sample lies in the image, the two pixels beside it with their shares)."""
        b = self.b
        size = self.cx.operand_types[0].dims[2 + axis]
        part = b.scalar("div", self.mul(self.add(self.of(step), self.number(0.5)), extent),
                        self.of(samples))  # fmt: skip
        at, last = self.add(start, part), self.of(b.sub(b.dim(size), 1))
        low = b.scalar("ge", at, self.number(-1), result="bool")
        high = b.scalar("le", at, self.of(b.dim(size)), result="bool")
        at = b.scalar("min", b.scalar("max", at, self.number(0)), last)
        floor = b.scalar("floor", at)
        share = self.sub(at, floor)
        place = clamp(b, b.to_index(b.cast(floor, "i64")), size)
        following = clamp(b, b.add(place, 1), size)
        pair = [(place, self.sub(self.number(1), share)), (following, share)]
        return b.scalar("and", low, high), pair


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b, (region, channel, row, column) = cx.b, index
    image = bounded_index(b, cx.operand(2, (region,)), cx.operand_types[0].dims[0])
    r = _Region(cx, region)
    (y, tall, rows), (x, broad, columns) = r.bin(0, row), r.bin(1, column)

    def sample(i: Index, j: Index, total: Value) -> Value:
        inside, ys = r.tap(y, tall, rows, i, 0)
        within, xs = r.tap(x, broad, columns, j, 1)
        parts = [
            r.mul(r.mul(p, q), r.element(0, (image, channel, v, u)))
            for (v, p), (u, q) in product(ys, xs)
        ]
        value = parts[0]
        for part in parts[1:]:
            value = b.scalar("add" if cx.attrs.mode == "avg" else "max", value, part)
        value = b.scalar(
            "select", b.scalar("and", inside, within), value, r.number(0), result=r.kind
        )
        return b.scalar("add" if cx.attrs.mode == "avg" else "max", total, value)

    total = _over(cx, (rows, columns), r.number(0 if cx.attrs.mode == "avg" else -math.inf), sample)
    count = b.mul(rows, columns)
    if cx.attrs.mode == "avg":
        total = b.scalar("div", total, r.of(b.index("max", count, 1)))
    else:
        some = b.compare("lt", 0, count)
        total = b.scalar("select", some, total, r.number(0), result=r.kind)
    return b.cast(total, cx.result_type.dtype.name)


def _over(
    cx: ElementCx, grid: tuple[Index, Index], start: Value, step: Callable[..., Value]
) -> Value:
    with cx.b.loop(0, grid[0], [start]) as rows:
        with cx.b.loop(0, grid[1], [rows.args[0]]) as columns:
            columns.yield_(step(rows.iv, columns.iv, columns.args[0]))
        rows.yield_(columns.results[0])
    return rows.results[0]


ROI_ALIGN = Primitive(
    name="roi_align",  # [regions, channels, height, width]; samples 0: as many as pixels in a bin
    infer=_infer,
    evaluate=_evaluate,
    attrs={
        "height": Attr("int"),
        "width": Attr("int"),
        "scale": Attr("float", 1.0),
        "offset": Attr("float", 0.0),
        "least": Attr("float", 0.0),
        "samples": Attr("int", 0),
        "mode": Attr("str", "avg"),
    },
    element=_element,
    tags=frozenset({"gather"}),
    tolerance=1e-5,
    computes=True,
).register()
