"""Sizes and pads of sliding windows: what Conv, ConvTranspose and the pools share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim, ceil_div, dim_max, dim_min
from cuvil.ops.onnx.context import Cx

__all__ = ["AUTO_PADS", "Window", "window"]

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """A window over spatial axes; pads: below every axis, then above every one."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[Dim, ...]
    out: tuple[Dim, ...]


def window(
    cx: Cx,
    space: Sequence[Dim],
    kernel: Sequence[int],
    *,
    strides: Sequence[int],
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Window:
    """Defaults filled in and auto_pad resolved for an image of these spatial extents.

    Output extents: floor or ceil of (padded - reach) / stride, plus 1; with ceil_mode a last
    window that would begin in the upper pad is left out.
    """
    n = len(space)
    kernel, strides = tuple(kernel), tuple(strides) or (1,) * n
    dilations, given = tuple(dilations) or (1,) * n, tuple(pads) or (0,) * 2 * n
    if auto_pad not in AUTO_PADS:
        cx.bad(f"auto_pad={auto_pad!r} is not one of {', '.join(AUTO_PADS)}")
    for name, numbers in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
        if len(numbers) != n or min(numbers) < 1:
            cx.bad(f"{name} {list(numbers)} does not fit {n} spatial axes")
    if len(given) != 2 * n:
        cx.bad(f"pads {list(given)} do not fit {n} spatial axes")
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    chosen = _pads(space, reach, strides, given, auto_pad)
    for axis, size in enumerate(space):
        cx.assume(size + chosen[axis] + chosen[n + axis], reach[axis], None)
    out = [
        _extent(space[i], reach[i], strides[i], chosen[i], chosen[n + i], bool(ceil_mode))
        for i in range(n)
    ]
    for size in out:
        if isinstance(size, int) and size < 0:
            cx.bad(f"a window of {list(reach)} does not fit {', '.join(map(str, space))}")
    return Window(kernel, strides, dilations, chosen, tuple(out))


def _pads(
    space: Sequence[Dim],
    reach: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    auto_pad: str,
) -> tuple[Dim, ...]:
    if auto_pad == "NOTSET":
        return tuple(pads)
    if auto_pad == "VALID":
        return (0,) * len(pads)
    low, high = [], []
    for size, span, stride in zip(space, reach, strides, strict=True):
        total = dim_max((ceil_div(size, stride) - 1) * stride + span - size, 0)
        if stride == 1:
            total = span - 1
        less, more = total // 2, total - total // 2
        low.append(less if auto_pad == "SAME_UPPER" else more)
        high.append(more if auto_pad == "SAME_UPPER" else less)
    return (*low, *high)


def _extent(size: Dim, reach: int, stride: int, low: Dim, high: Dim, ceil: bool) -> Dim:
    room = size + low + high - reach
    if not ceil:
        return room // stride + 1
    return dim_min(ceil_div(room, stride) + 1, ceil_div(size + low, stride))
