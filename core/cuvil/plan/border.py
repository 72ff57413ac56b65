"""Pads with literal extents: runs of fill values, and of the image where it is not inside yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim, product
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.kernel import Draft, Kernel

_COPIED_PARTS = 8  # of an image that is not inside yet
_SMALL = 1 << 16  # bytes


def fills_by_runs(op: Operation) -> bool:
    """Whether `pad_kernel` computes the op: constant fill, nothing cut off, literal extents."""
    attrs = attrs_of(op)
    literal = all(isinstance(p, int) and p >= 0 for p in (*attrs.low, *attrs.high))
    return bool(attrs.mode == "constant" and literal)


def pad_kernel(draft: Draft, name: str) -> Kernel:
    """For each index of the leading axes that are not padded some tasks: each takes a part of the
    result along the first axis that is."""
    root = draft.group.root
    attrs, dims = attrs_of(root), tensor_type(root.results[0]).dims
    first = next((i for i, p in enumerate(zip(attrs.low, attrs.high, strict=True)) if any(p)), 0)
    b, puller = draft.b, draft.puller()
    fill = puller.element(root.operands[1], ())
    pad = _Pad(b, dims, attrs.low, attrs.high, draft.writes[root.results[0]], fill)
    image = root.operands[0]
    inside = image in draft.layouts.parts(root.results[0])
    parts = _parts(root.results[0], inside)
    images = min(first, 1)  # parts of an image come one after another, of all its channels
    index = b.unflatten(draft.task, (*dims[:images], parts, *dims[images:first]))
    part, outer = index[images], (*index[:images], *index[images + 1 :])
    rows = b.dim(dims[first])
    begin, end = (b.div(b.mul(n, rows), parts) for n in (part, b.add(part, 1)))
    start = b.mul(b.flatten(outer, dims[:first]), b.dim(product(dims[first:])))
    pad.border(first, start, (begin, end))
    if not inside:
        source = tensor_type(image).dims

        def copy(at: tuple[Index, ...], place: Index) -> None:
            b.store(puller.element(image, (*outer, *at)), pad.target, place)

        pad.image(first, start, source, (), copy, (begin, end))
    return draft.finish(name, product(dims[:first]) * parts)


def _parts(result: Value, inside: bool) -> int:
    """Tasks per index of the leading axes: a border that is large enough is written by the threads
    that use its halves."""
    size = tensor_type(result).size * tensor_type(result).dtype.size
    if isinstance(size, int) and size < _SMALL:
        return 1
    return 2 if inside else _COPIED_PARTS


@dataclass
class _Pad:
    b: NestBuilder
    dims: Sequence[Dim]
    low: Sequence[int]
    high: Sequence[int]
    target: Value
    fill: Value

    def border(self, axis: int, start: Index, part: tuple[Index, Index] | None = None) -> None:
        """Where the axes before are in the image and this one is not, the axes after are one run.
        start: the offset of this axis's element 0. part: [begin, end) of this axis, None: all."""
        b, padded = self.b, [low or high for low, high in zip(self.low, self.high, strict=True)]
        inner = product(self.dims[axis + 1 :])
        low, high = self.low[axis], self.high[axis]
        end = b.dim(self.dims[axis] - high)
        if low:
            self._run(start, inner, self._within(0, low, part))
        if high:
            self._run(start, inner, self._within(end, b.dim(self.dims[axis]), part))
        if any(padded[axis + 1 :]):
            with b.loop(*self._within(low, end, part)) as loop:
                self.border(axis + 1, b.add(start, b.mul(loop.iv, b.dim(inner))))

    def _within(
        self, begin: Index, end: Index, part: tuple[Index, Index] | None
    ) -> tuple[Index, Index]:
        if part is None:
            return begin, end
        return self.b.index("max", begin, part[0]), self.b.index("min", end, part[1])

    def _run(self, start: Index, inner: Dim, rows: tuple[Index, Index]) -> None:
        """Fills rows of so many elements each."""
        size = self.b.dim(inner)
        first, last = (self.b.add(start, self.b.mul(row, size)) for row in rows)
        with self.b.loop(first, last, kind="parallel") as loop:
            self.b.store(self.fill, self.target, loop.iv)

    def image(
        self,
        axis: int,
        start: Index,
        source: Sequence[Dim],
        at: tuple[Index, ...],
        copy: object,
        part: tuple[Index, Index] | None = None,
    ) -> None:
        """Loops over the image's elements from this axis on; those of `part` of the result."""
        b, last = self.b, axis == len(source) - 1
        inner = b.dim(product(self.dims[axis + 1 :]))
        low = self.low[axis]
        mine = (b.sub(part[0], low), b.sub(part[1], low)) if part else None
        rows = self._within(0, b.dim(source[axis]), mine)
        with b.loop(*rows, kind="parallel" if last else "") as loop:
            place = b.add(start, b.mul(b.add(loop.iv, low), inner))
            if last:
                copy((*at, loop.iv), place)  # type: ignore[operator]
            else:
                self.image(axis + 1, place, source, (*at, loop.iv), copy)
