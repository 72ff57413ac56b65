"""Steps that move elements by index, or name places: gathers, scatters, boxes, regions, dims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from tests.fuzz.found_steps import compressed
from tests.fuzz.program import Misfit, Program
from tests.fuzz.steps import Step

REDUCTIONS = ("none", "add", "mul", "max", "min")


def _known(t: TensorType) -> bool:
    return t.rank >= 1 and t.is_static and 0 not in t.dims


def _shape(p: Program, value: Value) -> list[int]:
    return [int(d) for d in p.dims(value)]  # type: ignore[arg-type]


def _tuples(p: Program, rows: Sequence[int], extents: Sequence[int]) -> Value:
    """Index tuples, some counted from the end."""
    columns = [p.rng.integers(-n, n, rows) for n in extents]
    table = np.stack(columns, -1) if columns else np.zeros([*rows, 0])
    return p.const(table.astype(p.choice((np.int32, np.int64))))


def gather_elements(p: Program) -> Value:
    x = p.pick(_known)
    shape = _shape(p, x)
    axis = p.number(0, len(shape) - 1)
    wanted = [p.number(1, n) for n in shape]
    wanted[axis] = p.number(1, 6)
    table = p.rng.integers(-shape[axis], shape[axis], wanted)
    index = p.const(table.astype(p.choice((np.int32, np.int64))))
    return p.emit("gather_elements", x, index, axis=axis, exact=True)


def gather_nd(p: Program) -> Value:
    x = p.pick(_known)
    shape = _shape(p, x)
    batch = p.number(0, min(1, len(shape) - 1))
    depth = p.number(0 if p.chance(0.2) else 1, len(shape) - batch)
    rows = [*shape[:batch], *(p.number(1, 4) for _ in range(p.number(0, 2)))]
    index = _tuples(p, rows, shape[batch : batch + depth])
    return p.emit("gather_nd", x, index, batch_dims=batch, exact=True)


def scatter_elements(p: Program) -> Value:
    """Each index once where the last of them would win; else some of them twice."""
    x = p.pick(lambda t: _known(t) and t.dtype.kind != "bool")
    axis = p.number(0, len(p.dims(x)) - 1)
    full = _shape(p, x)
    shape = [n if i == axis else p.number(1, n) for i, n in enumerate(full)]
    how = p.choice(REDUCTIONS)
    order = np.argsort(p.rng.random(shape), axis=axis)
    if how in ("max", "min") or (how != "none" and not tensor_type(x).dtype.is_float):
        order = p.rng.integers(-full[axis], full[axis], shape)
    index = p.const(order.astype(p.choice((np.int32, np.int64))))
    updates = p.constant(shape, p.kind(x))
    exact = how not in ("add", "mul") or tensor_type(x).dtype.is_integer
    return p.emit("scatter_elements", x, index, updates, axis=axis, reduction=how, exact=exact)


def scatter_nd(p: Program) -> Value:
    """Leading axes by index; a later update wins."""
    x = p.pick(lambda t: _known(t) and t.dtype.kind != "bool")
    shape = _shape(p, x)
    depth = p.number(1, len(shape))
    rows = [p.number(1, 4)]
    index = _tuples(p, rows, shape[:depth])
    updates = p.constant([*rows, *shape[depth:]], p.kind(x))
    how = p.choice(REDUCTIONS)
    exact = how not in ("add", "mul") or tensor_type(x).dtype.is_integer
    return p.emit("scatter_nd", x, index, updates, reduction=how, exact=exact)


def suppress(p: Program) -> Value:
    """Boxes with corners in eighths, so that no overlap is rounded."""
    batch, classes, count = p.number(1, 2), p.number(1, 2), p.number(1, 12)
    low = p.rng.integers(0, 6, (batch, count, 2))
    boxes = np.concatenate([low, low + p.rng.integers(0, 5, low.shape)], -1) / 4
    order = np.argsort(p.rng.random((batch, classes, count)), axis=-1)
    eligible = p.rng.random((batch, classes, count)) < 0.8
    chosen = p.const(eligible)
    if p.chance(0.5):
        flag = p.emit("lt", p.pick_exact(_is_number_scalar), p.scalar(1, "i64"), exact=True)
        chosen = p.emit("or", chosen, flag, exact=True)
    return p.emit(
        "suppress", p.const(boxes.astype(np.float32)), p.const(order.astype(np.int64)), chosen,
        p.scalar(p.choice((0.1, 0.45, 0.8)), "f32"), p.scalar(p.number(0, 6), "i64"), exact=True,
    )  # fmt: skip


def _is_number_scalar(t: TensorType) -> bool:
    return t.dtype.name == "i64" and t.size == 1 and t.rank <= 3


def roi_align(p: Program) -> Value:
    x = p.pick(lambda t: t.rank == 4 and t.dtype.name in ("f32", "f64") and _known(t))
    count, (images, _, rows, columns) = p.number(1, 3), _shape(p, x)
    first = p.rng.integers(0, 8, (count, 2)) / 8
    size = p.rng.integers(1, 8, (count, 2)) / 4 + 0.125
    regions = np.concatenate([first, first + size], -1) * [columns, rows, columns, rows] / 2
    kind = tensor_type(x).dtype.numpy
    which = p.const(p.rng.integers(0, images, count).astype(np.int64))
    return p.emit("roi_align", x, p.const(regions.astype(kind)), which, height=p.number(1, 3),
                  width=p.number(1, 3), scale=p.choice((1.0, 0.5)), offset=p.choice((0.0, 0.5)),
                  samples=p.number(1, 2), mode=p.choice(("avg", "avg", "max")))  # fmt: skip


def dims(p: Program) -> Value:
    """Extents as numbers; the run checks one that is known to hold."""
    x = p.pick(lambda t: t.rank >= 1)
    wanted = list(p.dims(x))
    if p.chance(0.3):
        p.b.emit("require", [], left=wanted[0] * 2, right=wanted[0] + wanted[0])
    return p.emit("dims", dims=wanted, shape=[len(wanted)], dtype="i64", exact=True)


def repeated(p: Program) -> Value:
    """A tensor gathered by places that another found: top values of a row, in order."""
    x = p.pick_exact(lambda t: _known(t) and t.dtype.kind != "bool" and not t.dtype.is_narrow)
    axis = len(p.dims(x)) - 1
    top = p.emit("top_k", x, axis=axis, k=min(3, _shape(p, x)[-1]), exact=True)
    _, places = top.owner.results  # type: ignore[union-attr]
    p.exact.add(places)
    if p.number(0, 1):
        raise Misfit
    return p.emit("gather_elements", x, places, axis=axis, exact=True)


INDEX: tuple[tuple[int, Step], ...] = (
    (2, gather_elements), (2, gather_nd), (2, scatter_elements), (2, scatter_nd), (1, suppress),
    (1, roi_align), (2, dims), (1, repeated), (3, compressed),
)  # fmt: skip
