"""Transposed convolution: every input element adds its scaled kernel to the output."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.conv import (
    ATTRS,
    channel_axis,
    check_bias,
    check_image,
    check_weights,
    from_first,
    image_dims,
    image_index,
    pad_spatial,
    spatial_axes,
    to_first,
)
from cuvil.ops.lowering import ElementCx, both, clamp, guarded, inside, loops, wide


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    n = check_image("conv_transpose", t, a)
    check_weights("conv_transpose", t, a)
    x, w = t[0].dims, t[1].dims
    channels = x[channel_axis(a.layout, t[0].rank)]
    if isinstance(channels, int) and isinstance(w[0], int):
        if channels != w[0]:
            raise ValueError(f"conv_transpose: {channels} channels, but weights take {w[0]}")
        if channels % a.groups:
            raise ValueError(f"conv_transpose: {channels} channels in {a.groups} groups")
    check_bias("conv_transpose", t, w[1] * a.groups)
    extra = a.output_padding or (0,) * n
    if len(extra) != n:
        raise ValueError(f"conv_transpose: output_padding needs {n} numbers")
    spatial: list[Dim] = []
    for i, axis in enumerate(spatial_axes(a.layout, t[0].rank)):
        full = (x[axis] - 1) * a.strides[i] + a.dilations[i] * (w[2 + i] - 1) + 1 + extra[i]
        size = full - a.pads[i] - a.pads[n + i]
        if isinstance(size, int) and size < 0:
            raise ValueError(f"conv_transpose: pads take more than axis {axis} has")
        spatial.append(size)
    return [t[0].with_dims(image_dims(a.layout, x[0], w[1] * a.groups, spatial))]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    data: Any
    w: Any
    data, w = to_first(wide(x[0]), a.layout), wide(x[1])
    n, kernel, per_group = data.ndim - 2, w.shape[2:], w.shape[0] // a.groups
    extra = a.output_padding or (0,) * n
    full = [
        max((data.shape[2 + i] - 1) * a.strides[i] + a.dilations[i] * (kernel[i] - 1) + 1, 0)
        for i in range(n)
    ]
    result: Any = np.zeros((data.shape[0], w.shape[1] * a.groups, *full), data.dtype)
    grouped: Any = result.reshape(data.shape[0], a.groups, w.shape[1], *full)
    for g, taps in product(range(a.groups), product(*map(range, kernel))):
        part = slice(g * per_group, (g + 1) * per_group)
        weights = w[part][(slice(None), slice(None), *taps)]
        added = np.moveaxis(np.tensordot(data[:, part], weights, ([1], [0])), -1, 1)
        steps: list[Any] = [
            slice(t * d, t * d + (size - 1) * s + 1 if size else 0, s)
            for t, d, s, size in zip(taps, a.dilations, a.strides, data.shape[2:], strict=True)
        ]
        grouped[(slice(None), g, slice(None), *steps)] += added
    pads = [-p for p in a.pads[:n]] + [e - p for e, p in zip(extra, a.pads[n:], strict=True)]
    result = pad_spatial(result, pads)
    if len(x) > 2:
        result = result + wide(x[2]).reshape([-1] + [1] * n)
    return [from_first(result, a.layout).astype(x[0].dtype)]


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    """One output element: the taps that some input element puts there."""
    b, a, (x, w) = cx.b, cx.attrs, cx.operand_types[:2]
    axes = spatial_axes(a.layout, x.rank)
    channel = index[channel_axis(a.layout, x.rank)]
    group, column = _split(cx, channel)
    per_group = w.dims[0] // a.groups
    acc = x.dtype.compute.name

    def tap(k: tuple[Index, ...], total: Value) -> Sequence[Value]:
        found, safe = _places(cx, [index[axis] for axis in axes], k)

        def channels(c: tuple[Index, ...], total: Value) -> Sequence[Value]:
            source = b.add(b.mul(group, b.dim(per_group)), c[0])
            value = b.cast(cx.operand(0, image_index(a.layout, index[0], source, safe)), acc)
            weight = b.cast(cx.operand(1, [source, column, *k]), acc)
            value = b.scalar("mul", value, weight)
            return [b.scalar("add", total, guarded(b, found, value, b.const(0, acc)))]

        return loops(b, [per_group], [total], channels)

    (total,) = loops(b, w.dims[2:], [b.const(0, acc)], tap)
    if len(cx.operand_types) > 2:
        total = b.scalar("add", total, b.cast(cx.operand(2, [channel]), acc))
    return b.cast(total, cx.result_type.dtype.name)


def _split(cx: ElementCx, channel: Index) -> tuple[Index, Index]:
    """(group, channel in the group) of an output channel."""
    if cx.attrs.groups == 1:
        return 0, channel
    size = cx.b.dim(cx.operand_types[1].dims[1])
    return cx.b.div(channel, size), cx.b.mod(channel, size)


def _places(
    cx: ElementCx, out: Sequence[Index], taps: Sequence[Index]
) -> tuple[Value | None, list[Index]]:
    """Whether an input element reaches these output positions by these taps, and which."""
    b, a, x = cx.b, cx.attrs, cx.operand_types[0]
    conditions: list[Value | None] = []
    safe: list[Index] = []
    for i, axis in enumerate(spatial_axes(a.layout, x.rank)):
        shifted = b.add(out[i], b.dim(a.pads[i]))
        shifted = b.sub(shifted, b.mul(taps[i], a.dilations[i]))
        reached = b.index("max", shifted, 0)  # division is of non-negative numbers only
        place = b.div(reached, a.strides[i])
        if a.strides[i] > 1:
            conditions.append(b.compare("eq", b.mod(reached, a.strides[i]), 0))
        conditions += [b.compare("le", 0, shifted), inside(b, place, x.dims[axis])]
        safe.append(clamp(b, place, x.dims[axis]))
    return both(b, *conditions), safe


CONV_TRANSPOSE = Primitive(
    name="conv_transpose",  # x, w [I, O / groups, spatial...], perhaps a bias [O]; pads crop
    infer=_infer,
    evaluate=_evaluate,
    attrs={**ATTRS, "output_padding": Attr("ints", ())},
    element=_element,
    tags=frozenset({"anchor", "contraction"}),
    tolerance=1e-4,
    computes=True,
).register()
