"""Pads with literal extents: runs of fill values, and of the image where it is not inside yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim, product
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.kernel import Draft, Kernel


def fills_by_runs(op: Operation) -> bool:
    """Whether `pad_kernel` computes the op: constant fill, nothing cut off, literal extents."""
    attrs = attrs_of(op)
    literal = all(isinstance(p, int) and p >= 0 for p in (*attrs.low, *attrs.high))
    return bool(attrs.mode == "constant" and literal)


def pad_kernel(draft: Draft, name: str) -> Kernel:
    """A task per index of the leading axes that are not padded."""
    root = draft.group.root
    attrs, dims = attrs_of(root), tensor_type(root.results[0]).dims
    first = next((i for i, p in enumerate(zip(attrs.low, attrs.high, strict=True)) if any(p)), 0)
    puller = draft.puller()
    fill = puller.element(root.operands[1], ())
    pad = _Pad(draft.b, dims, attrs.low, attrs.high, draft.writes[root.results[0]], fill)
    start = draft.b.mul(draft.task, draft.b.dim(product(dims[first:])))
    pad.border(first, start)
    image = root.operands[0]
    if image not in draft.layouts.parts(root.results[0]):
        outer = draft.b.unflatten(draft.task, dims[:first])
        source = tensor_type(image).dims

        def copy(at: tuple[Index, ...], place: Index) -> None:
            draft.b.store(puller.element(image, (*outer, *at)), pad.target, place)

        pad.image(first, start, source, (), copy)
    return draft.finish(name, product(dims[:first]))


@dataclass
class _Pad:
    b: NestBuilder
    dims: Sequence[Dim]
    low: Sequence[int]
    high: Sequence[int]
    target: Value
    fill: Value

    def border(self, axis: int, start: Index) -> None:
        """Where the axes before are in the image and this one is not, the axes after are one run.
        start: the offset of this axis's element 0."""
        b, padded = self.b, [low or high for low, high in zip(self.low, self.high, strict=True)]
        inner = product(self.dims[axis + 1 :])
        low, high = self.low[axis], self.high[axis]
        end = self.dims[axis] - high
        if low:
            self._run(start, b.dim(inner * low))
        if high:
            self._run(b.add(start, b.dim(end * inner)), b.dim(inner * high))
        if any(padded[axis + 1 :]):
            with b.loop(low, b.dim(end)) as loop:
                self.border(axis + 1, b.add(start, b.mul(loop.iv, b.dim(inner))))

    def _run(self, start: Index, length: Index) -> None:
        with self.b.loop(0, length, kind="parallel") as loop:
            self.b.store(self.fill, self.target, self.b.add(start, loop.iv))

    def image(
        self,
        axis: int,
        start: Index,
        source: Sequence[Dim],
        at: tuple[Index, ...],
        copy: object,
    ) -> None:
        """Loops over the image's elements from this axis on."""
        b, last = self.b, axis == len(source) - 1
        inner = b.dim(product(self.dims[axis + 1 :]))
        with b.loop(0, b.dim(source[axis]), kind="parallel" if last else "") as loop:
            place = b.add(start, b.mul(b.add(loop.iv, self.low[axis]), inner))
            if last:
                copy((*at, loop.iv), place)  # type: ignore[operator]
            else:
                self.image(axis + 1, place, source, (*at, loop.iv), copy)
