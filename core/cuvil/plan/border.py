"""The border of a pad whose image has been written inside it already."""

from __future__ import annotations

from cuvil.ir.dims import product
from cuvil.ir.nest_build import Index
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.kernel import Draft, Kernel


def border_kernel(draft: Draft, name: str) -> Kernel:
    """Axis by axis: where the axes before are in the image and this one is not, the axes after are
    one run of fill values. One task: borders are thin."""
    root, b = draft.group.root, draft.b
    attrs, dims = attrs_of(root), tensor_type(root.results[0]).dims
    target = draft.writes[root.results[0]]
    fill = draft.puller().element(root.operands[1], ())

    def run(start: Index, length: Index) -> None:
        with b.loop(0, length, kind="parallel") as loop:
            b.store(fill, target, b.add(start, loop.iv))

    def walk(axis: int, start: Index) -> None:
        """start: the offset of this axis's element 0."""
        if not any((*attrs.low[axis:], *attrs.high[axis:])):
            return
        inner = product(dims[axis + 1 :])
        low, high = attrs.low[axis], attrs.high[axis]
        end = dims[axis] - high
        if low:
            run(start, b.dim(inner * low))
        if high:
            run(b.add(start, b.dim(end * inner)), b.dim(inner * high))
        if any((*attrs.low[axis + 1 :], *attrs.high[axis + 1 :])):
            with b.loop(b.dim(low), b.dim(end)) as loop:
                walk(axis + 1, b.add(start, b.mul(loop.iv, b.dim(inner))))

    walk(0, 0)
    return draft.finish(name, 1)
