"""Convolution over one to three spatial axes, in either layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.contract import factors, factors_fit, sum_dtype
from cuvil.ops.lowering import ElementCx, both, clamp, guarded, inside, loops, wide

MOST_STEPS = 1 << 31  # of strides and dilations: products with extents fit into 64 bits
LAYOUTS = ("channels_first", "channels_last")
ATTRS = {
    "strides": Attr("ints"),
    "dilations": Attr("ints"),
    "pads": Attr("dims"),  # below every spatial axis, then above every one
    "groups": Attr("int", 1),
    "layout": Attr("str", "channels_first"),
}


def channel_axis(layout: str, rank: int) -> int:
    """Where the channels are."""
    return 1 if layout == "channels_first" else rank - 1


def spatial_axes(layout: str, rank: int) -> range:
    """Where the spatial axes are."""
    return range(2, rank) if layout == "channels_first" else range(1, rank - 1)


def image_dims(layout: str, batch: Dim, channels: Dim, spatial: Sequence[Dim]) -> list[Dim]:
    """The dims (or the index) of an image tensor in this layout."""
    if layout == "channels_first":
        return [batch, channels, *spatial]
    return [batch, *spatial, channels]


def image_index(layout: str, batch: Index, channel: Index, spatial: Sequence[Index]) -> list[Index]:
    """The index of an element of an image tensor in this layout."""
    if layout == "channels_first":
        return [batch, channel, *spatial]
    return [batch, *spatial, channel]


def check_image(what: str, t: Sequence[TensorType], a: Attrs) -> int:
    """The number of spatial axes; ValueError where ranks, dtypes or attributes do not fit."""
    n = t[0].rank - 2
    if a.layout not in LAYOUTS:
        raise ValueError(f"{what}: unknown layout '{a.layout}'")
    if not 1 <= n <= 3:
        raise ValueError(f"{what} takes 1 to 3 spatial axes, not rank {t[0].rank}")
    for name, count in (("strides", n), ("dilations", n), ("pads", 2 * n)):
        if len(getattr(a, name)) != count:
            raise ValueError(f"{what}: {name} needs {count} numbers for rank {t[0].rank}")
    if any(t[0].dims[axis] == 0 for axis in spatial_axes(a.layout, t[0].rank)):
        raise ValueError(f"{what}: a spatial axis of {shapes(t[:1])} is empty")
    if min(*a.strides, *a.dilations) < 1:
        raise ValueError(f"{what}: strides and dilations must be at least 1")
    if max(*a.strides, *a.dilations) >= MOST_STEPS:
        raise ValueError(f"{what}: strides and dilations must be below {MOST_STEPS}")
    return n


def check_weights(what: str, t: Sequence[TensorType], a: Attrs) -> None:
    """ValueError unless x, w and the bias agree in rank and dtype and groups is positive."""
    if len(t) not in (2, 3) or t[1].rank != t[0].rank or not _dtypes_fit(t, a):
        raise ValueError(f"{what} takes x and w of one rank and dtype, and perhaps a bias")
    if t[0].dtype.kind == "bool" or a.groups < 1:
        raise ValueError(f"{what}: dtype {t[0].dtype.name} with {a.groups} groups")


def _dtypes_fit(t: Sequence[TensorType], a: Attrs) -> bool:
    if getattr(a, "accumulate", ""):
        return factors_fit(t[0].dtype, t[1].dtype, a) and len(t) == 2
    return len({k.dtype for k in t}) == 1


def check_bias(what: str, t: Sequence[TensorType], channels: Dim) -> None:
    """ValueError unless the bias, where there is one, has an element per output channel."""
    if len(t) > 2 and (t[2].rank != 1 or _differ(t[2].dims[0], channels)):
        raise ValueError(f"{what}: bias {list(map(str, t[2].dims))} for {channels} channels")


def _differ(a: Dim, b: Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    n = check_image("conv", t, a)
    check_weights("conv", t, a)
    x, w = t[0].dims, t[1].dims
    channels = x[channel_axis(a.layout, t[0].rank)]
    if _differ(channels, w[1] * a.groups):
        raise ValueError(f"conv: {channels} channels, but weights take {w[1]} x {a.groups} groups")
    if isinstance(w[0], int) and w[0] % a.groups:
        raise ValueError(f"conv: {w[0]} output channels do not divide into {a.groups} groups")
    check_bias("conv", t, w[0])
    spatial = []
    for i, axis in enumerate(spatial_axes(a.layout, t[0].rank)):
        padded = x[axis] + a.pads[i] + a.pads[n + i]
        size = (padded - a.dilations[i] * (w[2 + i] - 1) - 1) // a.strides[i] + 1
        if isinstance(size, int) and size < 0:
            raise ValueError(f"conv: the kernel does not fit into axis {axis} of {x[axis]}")
        spatial.append(size)
    dims = image_dims(a.layout, x[0], w[0], spatial)
    return [TensorType.of(dims, sum_dtype(t[0].dtype, a))]


def to_first(x: Any, layout: str) -> Any:
    """An array in channels-first order."""
    return x if layout == "channels_first" else np.moveaxis(x, -1, 1)


def from_first(x: Any, layout: str) -> Any:
    """The inverse of `to_first`."""
    return x if layout == "channels_first" else np.moveaxis(x, 1, -1)


def pad_spatial(x: Any, pads: Sequence[int], fill: Any = 0) -> Any:
    """Pads (or, below 0, crops) the spatial axes of a channels-first array."""
    n = x.ndim - 2
    for i, (low, high) in enumerate(zip(pads[:n], pads[n:], strict=True)):
        crop = [slice(None)] * x.ndim
        crop[2 + i] = slice(max(-low, 0), x.shape[2 + i] - max(-high, 0))
        x = x[tuple(crop)]
    widths = [(max(low, 0), max(high, 0)) for low, high in zip(pads[:n], pads[n:], strict=True)]
    return np.pad(x, [(0, 0), (0, 0), *widths], constant_values=fill)


def _windows(x: Any, kernel: Sequence[int], a: Attrs) -> Any:
    """View [N, C, out..., k...] of a padded channels-first array."""
    n = len(kernel)
    reach = [d * (k - 1) + 1 for d, k in zip(a.dilations, kernel, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, 2 + n)))
    steps = [slice(None, None, s) for s in a.strides] + [slice(None, None, d) for d in a.dilations]
    return view[(slice(None), slice(None), *steps)]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    data, w = factors(x[:2], a)
    data = pad_spatial(to_first(data, a.layout), a.pads)
    kernel, per_group = w.shape[2:], w.shape[0] // a.groups
    reach = [d * (k - 1) + 1 for d, k in zip(a.dilations, kernel, strict=True)]
    sizes = [
        (size - r) // s + 1 for size, r, s in zip(data.shape[2:], reach, a.strides, strict=True)
    ]
    if min(sizes) <= 0:
        zero = np.zeros((data.shape[0], w.shape[0], *(max(n, 0) for n in sizes)), x[0].dtype)
        return [from_first(zero, a.layout).astype(sum_dtype(from_numpy(x[0].dtype), a).numpy)]
    view = _windows(data, kernel, a)
    n, c = len(kernel), w.shape[1]
    parts = []
    for g in range(a.groups):
        patches = view[:, g * c : (g + 1) * c]
        weights = w[g * per_group : (g + 1) * per_group]
        axes = [1, *range(2 + n, 2 + 2 * n)]
        product = np.tensordot(patches, weights, (axes, list(range(1, 2 + n))))
        parts.append(np.moveaxis(product, -1, 1))
    result = np.concatenate(parts, 1)
    if len(x) > 2:
        result = result + wide(x[2]).reshape([-1] + [1] * n)
    return [from_first(result, a.layout).astype(sum_dtype(from_numpy(x[0].dtype), a).numpy)]


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    """One output element: loops over the kernel's taps, then over its channels."""
    b, a, (x, w) = cx.b, cx.attrs, cx.operand_types[:2]
    axes = spatial_axes(a.layout, x.rank)
    channel = index[channel_axis(a.layout, x.rank)]
    group = _group(cx, channel)
    acc = cx.result_type.dtype.compute.name

    def tap(k: tuple[Index, ...], total: Value) -> Sequence[Value]:
        places = [_place(cx, i, index[axis], k[i]) for i, axis in enumerate(axes)]
        found = both(b, *(inside(b, p, x.dims[s]) for p, s in zip(places, axes, strict=True)))
        safe = [clamp(b, p, x.dims[s]) for p, s in zip(places, axes, strict=True)]

        def channels(c: tuple[Index, ...], total: Value) -> Sequence[Value]:
            source = b.add(b.mul(group, b.dim(w.dims[1])), c[0])
            value = b.cast(cx.operand(0, image_index(a.layout, index[0], source, safe)), acc)
            weight = b.cast(cx.operand(1, [channel, c[0], *k]), acc)
            value = guarded(b, found, value, b.const(0, acc))
            return [b.scalar("add", total, b.scalar("mul", value, weight))]

        return loops(b, [w.dims[1]], [total], channels)

    (total,) = loops(b, w.dims[2:], [b.const(0, acc)], tap)
    if len(cx.operand_types) > 2:
        total = b.scalar("add", total, b.cast(cx.operand(2, [channel]), acc))
    return b.cast(total, cx.result_type.dtype.name)


def _group(cx: ElementCx, channel: Index) -> Index:
    if cx.attrs.groups == 1:
        return 0
    return cx.b.div(channel, cx.b.dim(cx.operand_types[1].dims[0] // cx.attrs.groups))


def _place(cx: ElementCx, i: int, out: Index, tap: Index) -> Index:
    """The input position of an output position and a kernel position; it may be outside."""
    b, a = cx.b, cx.attrs
    start = b.sub(b.mul(out, a.strides[i]), b.dim(a.pads[i]))
    return b.add(start, b.mul(tap, a.dilations[i]))


CONV = Primitive(
    name="conv",  # x, w [O, I / groups, spatial...] and perhaps a bias [O]; a cross-correlation
    infer=_infer,
    evaluate=_evaluate,
    attrs={**ATTRS, "accumulate": Attr("str", "")},  # as that of contract
    element=_element,
    tags=frozenset({"anchor", "contraction"}),
    tolerance=1e-4,
    computes=True,
).register()
