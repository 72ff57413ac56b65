"""What a `nest.template` computes, in numpy: the sums of its spec, then its epilogue's region."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.ir import nest
from cuvil.ir.dims import evaluate
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.names import Value
from cuvil.ops.lowering import wide
from cuvil.ops.nest_accesses import Accesses
from cuvil.ops.nest_interpreter import run_region
from cuvil.plan.templates.attention import number
from cuvil.plan.templates.contract import GROUP
from cuvil.plan.templates.cook_toom import matrices

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Template:
    """A template with its buffers and the values of its symbols."""

    op: nest.TemplateOp
    buffers: Mapping[Value, Array]
    env: Mapping[str, int]

    def sizes(self, key: str) -> list[int]:
        return [evaluate(d, self.env) for d in self.op.spec.data[key].data]  # type: ignore[attr-defined]

    def rows(self, key: str, width: int) -> list[list[int]]:
        flat = self.sizes(key)
        return [flat[i : i + width] for i in range(0, len(flat), width)]

    def buffer(self, i: int) -> Array:
        return self.buffers[self.op.buffers[i]]

    def finish(self, acc: Array, indices: Sequence[Array], c_at: Array, c: int = 2) -> None:
        """Runs the epilogue on sums and stores what it yields at offsets `c_at` of C.

        indices: what the region gets behind the accumulator; all broadcast to acc's shape. c: the
        number of C's buffer.
        """
        accesses, target = Accesses(*acc.shape), self.buffer(c)
        block = self.op.epilogue.block
        (result,) = run_region(block, [acc, *indices], self.buffers, self.env, accesses)
        place = np.broadcast_to(c_at, acc.shape)
        accesses.note(self.op, target, place, None, write=True)
        accesses.check()
        if result.dtype != target.dtype:
            raise TypeError(f"{result.dtype} stored into a buffer of {target.dtype}")
        target[_inside(target, place)] = result


def run_template(
    template: nest.TemplateOp, buffers: Mapping[Value, Array], env: Mapping[str, int]
) -> None:
    """Computes all of a template on flat arrays.

    buffers: those of the kernel, by its block's arguments. Raises IndexError outside a buffer,
    RuntimeError where the template writes what it also reads elsewhere.
    """
    _MEANING[template.kind.data](_Template(template, buffers, env))


def _contract(t: _Template) -> None:
    """C[batch, rows, n] = epilogue(sum over k of A[batch, rows, k] * B[batch, k, n])."""
    batch, rows, k = t.rows("batch", 5), t.rows("rows", 3), t.rows("k", 2)
    (n,), (panel,) = t.sizes("n"), t.sizes("panel")
    outer = [d[0] for d in batch], [d[0] for d in rows]
    *at, column = _grid([*outer[0], *outer[1], n])
    bt, rt = at[: len(batch)], at[len(batch) :]
    terms = _grid([d[0] for d in k])
    k_at = _offsets(terms, [d[1] for d in k]).reshape(-1)
    a_at = _offsets(bt, [d[1] for d in batch]) + _offsets(rt, [d[1] for d in rows])
    shape = (*outer[0], *outer[1], n)
    a, b = t.buffer(0), t.buffer(1)
    group = np.arange(GROUP[from_numpy(a.dtype).name])
    a_at = np.broadcast_to(a_at, (*shape[:-1], 1)) + k_at
    terms_of_group = k_at.size * group.size
    a_at = (a_at[..., None] * group.size + group).reshape(*shape[:-1], terms_of_group)
    depth = np.arange(k_at.size)[:, None]
    columns = np.arange(n)
    inside = (columns // panel * k_at.size + depth) * panel + columns % panel
    inside = (inside[:, None] * group.size + group[:, None]).reshape(terms_of_group, n)
    starts = _offsets(_grid(outer[0]), [d[2] * group.size for d in batch])
    b_at = np.broadcast_to(starts, outer[0])[..., None, None] + inside
    left = a[_inside(a, a_at)].reshape(*outer[0], math.prod(outer[1]), a_at.shape[-1])
    acc = np.matmul(_factor(left), _factor(b[_inside(b, b_at)])).reshape(shape)
    c_at = _offsets(bt, [d[3] for d in batch]) + _offsets(rt, [d[2] for d in rows]) + column
    _apart(t.buffer(2), c_at, (a, a_at), (b, b_at))
    t.finish(acc, [*bt, *rt, column + _offsets(bt, [d[4] for d in batch])], c_at)


def _few_rows(t: _Template) -> None:
    """The same where B lies as its strides say."""
    batch, rows, (terms, a_step) = t.rows("batch", 5), t.rows("rows", 3), t.sizes("k")
    (n,), (k_step, n_step) = t.sizes("n"), t.sizes("steps")
    *at, column = _grid([*(d[0] for d in batch), *(d[0] for d in rows), n])
    bt, rt = at[: len(batch)], at[len(batch) :]
    k = np.arange(terms)
    a_at = _offsets(bt, [d[1] for d in batch]) + _offsets(rt, [d[1] for d in rows])
    a_at = a_at[..., None] + k * a_step
    b_at = _offsets([*bt, column], [*(d[2] for d in batch), n_step])[..., None] + k * k_step
    a, b = t.buffer(0), t.buffer(1)
    acc = (wide(a[_inside(a, a_at)]) * wide(b[_inside(b, b_at)])).sum(-1)
    c_at = _offsets(bt, [d[3] for d in batch]) + _offsets(rt, [d[2] for d in rows]) + column
    _apart(t.buffer(2), c_at, (a, a_at), (b, b_at))
    t.finish(acc, [*bt, *rt, column + _offsets(bt, [d[4] for d in batch])], c_at)


def _depthwise(t: _Template) -> None:
    """C[batch, y, x, c] = epilogue(sum over taps (i, j) of A[batch, y', x', c] * B[i, j, c])."""
    count, a_batch, c_batch = t.sizes("batch")
    (channels,), out, taps = t.sizes("channels"), t.sizes("out"), t.sizes("kernel")
    stride, dilation, a_step, c_step = (t.sizes(k) for k in ("stride", "dilation", "a", "c"))
    a, b = t.buffer(0), t.buffer(1)
    bt, y, x, channel = _grid([count, *out, channels])
    acc = np.zeros((count, *out, channels), a.dtype)
    c_at = bt * c_batch + y * c_step[0] + x * c_step[1] + channel
    for i in range(taps[0]):
        for j in range(taps[1]):
            row, pixel = y * stride[0] + i * dilation[0], x * stride[1] + j * dilation[1]
            a_at = bt * a_batch + row * a_step[0] + pixel * a_step[1] + channel
            b_at = (i * taps[1] + j) * channels + channel
            acc += a[_inside(a, a_at)] * b[_inside(b, b_at)]
            _apart(t.buffer(2), c_at, (a, a_at), (b, b_at))
    t.finish(acc, [bt, y, x, channel], c_at)


def _factor(x: Array) -> Array:
    """As the reference multiplies it: bytes are summed exactly."""
    return x.astype(np.int32) if x.dtype.itemsize == 1 else wide(x)


def _winograd(t: _Template) -> None:
    """C[image, y, x, :] = epilogue(sum over taps and channels of A * W), from the transformed taps
    in B."""
    m, image, result = t.sizes("tile"), t.sizes("image"), t.sizes("result")
    (channels, n), (panel,) = t.sizes("channels"), t.sizes("panel")
    sides = [matrices(k, taps) for k, taps in zip(m, t.sizes("taps"), strict=True)]
    (back, back_x), (forth, forth_x) = (
        [np.array(side[which], np.float64) for side in sides] for which in (0, 2)
    )
    a, b = t.buffer(0), t.buffer(1)
    down, across = -(-result[0] // m[0]), -(-result[1] // m[1])
    it, ty, tx, i, j, c = _grid([image[0], down, across, len(forth), len(forth_x), channels])
    y, x = ty * m[0] + i, tx * m[1] + j
    a_at = it * image[3] + y * image[4] + x * image[5] + c
    exists = np.broadcast_to((y < image[1]) & (x < image[2]), a_at.shape)
    tiles = np.where(exists, a[_inside(a, np.where(exists, a_at, 0))], np.float32(0))
    data = np.einsum("ai,bj,ntxijc->ntxabc", forth, forth_x, tiles, optimize=True)
    taps = b.reshape(-1, len(forth), len(forth_x), channels, panel).astype(np.float64)
    sums = np.einsum("ntxabc,pabcq->ntxabpq", data, taps, optimize=True)
    tile = np.einsum("ia,jb,ntxabpq->ntixjpq", back, back_x, sums, optimize=True)
    acc = tile.reshape(image[0], down * m[0], across * m[1], -1)[:, : result[0], : result[1], :n]
    *at, column = _grid([image[0], *result[:2], n])
    c_at = _offsets(at, result[2:]) + column
    _apart(t.buffer(2), c_at, (a, a_at[exists]), (b, np.arange(b.size)))
    t.finish(acc.astype(np.float32), [*at, column], c_at)


def _attention(t: _Template) -> None:
    """C[batch, m, :] = epilogue(sum over n of softmax(S)[batch, m, n] * V[batch, n, :])."""
    batch, queries, keys = t.rows("batch", 6), t.sizes("queries"), t.sizes("keys")
    width, (columns,), (masked, causal) = t.sizes("width"), t.sizes("columns"), t.sizes("masked")
    scale, fill = (np.float32(number(n)) for n in t.sizes("numbers"))
    bt = _grid([*(dim[0] for dim in batch), 1])[:-1]
    m, n, d, e = (np.arange(x) for x in (queries[0], keys[0], width[0], columns))

    def read(buffer: int, of: int, rows: Array, places: Array) -> tuple[Array, Array]:
        """[batch, rows, places] of a buffer, and where they lie."""
        outer = _offsets(bt, [dim[of] for dim in batch])
        at = outer[..., None] + rows[:, None] + places
        full = np.broadcast_to(at, (*(dim[0] for dim in batch), rows.size, places.size))
        return t.buffer(buffer)[_inside(t.buffer(buffer), full)], full

    q, q_at = read(0, 1, m * queries[1], d * width[1])
    k, k_at = read(1, 2, n * keys[1], d * width[2])
    v, v_at = read(2, 3, n * keys[2], e)
    scores = np.matmul(q * scale, k.swapaxes(-1, -2))
    if masked:
        mask, _ = read(4, 4, m * queries[2], n * keys[3])
        scores = scores + mask if masked == 1 else np.where(mask, scores, fill)
    if causal:
        scores = np.where(np.tri(m.size, n.size, dtype=bool), scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    acc = np.matmul(weights / weights.sum(-1, keepdims=True), v)
    *at, row, column = _grid([*(dim[0] for dim in batch), m.size, e.size])
    c_at = _offsets([*at, row], [*(dim[5] for dim in batch), queries[3]]) + column
    _apart(t.buffer(3), c_at, *((t.buffer(i), x) for i, x in enumerate((q_at, k_at, v_at))))
    t.finish(acc, [*at, row, column], np.broadcast_to(c_at, acc.shape), 3)


def _lookup(t: _Template) -> None:
    """C[i] = epilogue(table[codes[i]])."""
    (place,) = _grid(t.sizes("count"))
    codes, table = t.buffer(0), t.buffer(1)
    t.finish(table[codes[_inside(codes, place)].view(np.uint8)], [place], place)


_MEANING: dict[str, Callable[[_Template], None]] = {
    "contract": _contract,
    "few_rows": _few_rows,
    "winograd": _winograd,
    "depthwise": _depthwise,
    "attention": _attention,
    "lookup": _lookup,
}


def _grid(extents: Sequence[int]) -> list[Array]:
    """One array of indices per axis; together they broadcast to `extents`."""
    return list(np.ix_(*(np.arange(e) for e in extents)))


def _offsets(indices: Sequence[Array], strides: Sequence[int]) -> Array:
    total: Array = np.zeros((), np.int64)
    for index, stride in zip(indices, strides, strict=True):
        total = total + index * stride
    return total


def _inside(buffer: Array, at: Array) -> Array:
    """Offsets, all of them inside the buffer."""
    if at.size and not (at.min() >= 0 and at.max() < buffer.size):
        raise IndexError(
            f"a template touches elements {at.min()} to {at.max()} of a buffer of {buffer.size}"
        )
    return at


def _apart(target: Array, c_at: Array, *reads: tuple[Array, Array]) -> None:
    """Checks that C shares no element with what the sums are made of."""
    if not c_at.size:
        return
    for source, at in reads:
        if np.may_share_memory(source, target) and _shared(source, at, target, c_at):
            raise RuntimeError("a template writes what its sums read")


def _shared(source: Array, at: Array, target: Array, c_at: Array) -> bool:
    start = [x.__array_interface__["data"][0] for x in (source, target)]
    read = start[0] + at.reshape(-1) * source.itemsize
    return bool(np.isin(read, start[1] + c_at.reshape(-1) * target.itemsize).any())
