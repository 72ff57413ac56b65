"""How far templates reach into the tensors that they read and write by strides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from cuvil.ir import nest
from cuvil.ir.dims import evaluate
from cuvil.ir.names import Value
from cuvil.ir.types import BufferType
from cuvil.plan.templates.contract import GROUP

_Sizes = Callable[[str], Sequence[int]]  # the numbers of a row of the spec
_Axis = tuple[int, int]  # extent, stride


def reach(kernel: nest.KernelOp, env: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """(position of a buffer, bytes from its start to the end of the last element touched) of what a
    template addresses by strides; packed operands are not among it, nor is what its epilogue
    reads. Nothing for kernels that are loops: their addresses may depend on data."""
    block = kernel.body.block
    template = block.first_op
    if not isinstance(template, nest.TemplateOp):
        return

    def sizes(key: str) -> Sequence[int]:
        return [evaluate(d, env) for d in template.spec.data[key].data]  # type: ignore[attr-defined]

    places: dict[Value, int] = {value: i for i, value in enumerate(block.args)}
    for number, axes in _AXES[template.kind.data](sizes).items():
        buffer = template.buffers[number]
        assert isinstance(buffer.type, BufferType)
        dtype = buffer.type.dtype
        several = template.kind.data == "contract" and number == 0  # a stride counts groups there
        count = _count(axes) * (GROUP.get(dtype.name, 1) if several else 1)
        yield places[buffer], count * dtype.size


def _count(axes: Sequence[_Axis]) -> int:
    """Elements up to the last one of a tensor with these axes."""
    if any(extent <= 0 for extent, _ in axes):
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in axes)


def _rows(flat: Sequence[int], width: int) -> list[Sequence[int]]:
    return [flat[i : i + width] for i in range(0, len(flat), width)]


def _result(of: _Sizes) -> list[_Axis]:
    """C of a contraction."""
    outer = [(d[0], d[3]) for d in _rows(of("batch"), 5)]
    return [*outer, *((d[0], d[2]) for d in _rows(of("rows"), 3)), (of("n")[0], 1)]


def _contract(of: _Sizes) -> dict[int, list[_Axis]]:
    outer = [(d[0], d[1]) for d in (*_rows(of("batch"), 5), *_rows(of("rows"), 3))]
    return {0: [*outer, *((d[0], d[1]) for d in _rows(of("k"), 2))], 2: _result(of)}


def _few_rows(of: _Sizes) -> dict[int, list[_Axis]]:
    (terms, step), (k_step, n_step) = of("k"), of("steps")
    b = [(d[0], d[2]) for d in _rows(of("batch"), 5)]
    outer = [(d[0], d[1]) for d in (*_rows(of("batch"), 5), *_rows(of("rows"), 3))]
    return {
        0: [*outer, (terms, step)],
        1: [*b, (terms, k_step), (of("n")[0], n_step)],
        2: _result(of),
    }


def _depthwise(of: _Sizes) -> dict[int, list[_Axis]]:
    (count, a_batch, c_batch), channels = of("batch"), (of("channels")[0], 1)
    a, c = [(count, a_batch), channels], [(count, c_batch), channels]
    for i, extent in enumerate(of("out")):
        taps, stride, dilation, step = (of(k)[i] for k in ("kernel", "stride", "dilation", "a"))
        a += [(extent, stride * step), (taps, dilation * step)]
        c += [(extent, of("c")[i])]
    return {0: a, 2: c}


def _winograd(of: _Sizes) -> dict[int, list[_Axis]]:
    image, result, (channels, n) = of("image"), of("result"), of("channels")
    outer = [image[0], *result[:2], n]
    c = list(zip(outer, (*result[2:], 1), strict=True))
    empty = any(extent <= 0 for extent in outer)  # no tile is looked at
    a = [*zip(image[:3], image[3:], strict=True), (0 if empty else channels, 1)]
    return {0: a, 2: c}


def _attention(of: _Sizes) -> dict[int, list[_Axis]]:
    batch, queries, keys = _rows(of("batch"), 6), of("queries"), of("keys")
    width, (columns,), (masked, _) = of("width"), of("columns"), of("masked")
    q, k, v, c = ([(d[0], d[i]) for d in batch] for i in (1, 2, 3, 5))
    found = {
        0: [*q, (queries[0], queries[1]), (width[0], width[1])],
        1: [*k, (keys[0], keys[1]), (width[0], width[2])],
        2: [*v, (keys[0], keys[2]), (columns, 1)],
        3: [*c, (queries[0], queries[3]), (columns, 1)],
    }
    if masked:
        mask = [(d[0], d[4]) for d in batch]
        found[4] = [*mask, (queries[0], queries[2]), (keys[0], keys[3])]
    return found


def _lookup(of: _Sizes) -> dict[int, list[_Axis]]:
    return {0: [(of("count")[0], 1)], 2: [(of("count")[0], 1)]}


_AXES: dict[str, Callable[[_Sizes], dict[int, list[_Axis]]]] = {
    "contract": _contract,
    "few_rows": _few_rows,
    "winograd": _winograd,
    "depthwise": _depthwise,
    "attention": _attention,
    "lookup": _lookup,
}
