"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cuvil.ir.dims import Dim
from cuvil.ops.compose.helpers import fitted, index_list, static
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.onnx.window import AUTO_PADS, window

Ints = tuple[int, ...]


def with_kernel(cx: Cx, w: Value, kernel_shape: Ints) -> tuple[Value, list[int]]:
    """The weights and their spatial extents, which an attribute may repeat."""
    have = cx.dims(w)
    if len(kernel_shape) == len(have) - 2:
        w = fitted(cx, w, (*have[:2], *kernel_shape))
    elif kernel_shape:
        cx.bad(f"kernel_shape {list(kernel_shape)}, but weights are {list(have[2:])}")
    return w, static(cx, cx.dims(w)[2:], "the shape of the weights")


@onnx_op("Conv")
def conv(
    cx: Cx,
    x: Value,
    w: Value,
    bias: Value = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = (),
    group: int = 1,
    kernel_shape: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """Cross-correlation of x [N, C, ...] with w [O, C / group, ...]."""
    w, kernel = with_kernel(cx, w, kernel_shape)
    shape = window(
        cx,
        cx.dims(x)[2:],
        kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
        auto_pad=auto_pad,
    )
    operands = [x, w] if bias is None else [x, w, bias]
    return cx.b.conv(
        *operands,
        strides=shape.strides,
        dilations=shape.dilations,
        pads=shape.pads,
        groups=group,
    )


@onnx_op("ConvTranspose")
def conv_transpose(
    cx: Cx,
    x: Value,
    w: Value,
    bias: Value = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = (),
    group: int = 1,
    kernel_shape: Ints = (),
    output_padding: Ints = (),
    output_shape: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """The transpose of Conv: every element of x adds its scaled kernel to the output."""
    w, kernel = with_kernel(cx, w, kernel_shape)
    space = cx.dims(x)[2:]
    n = len(space)
    if auto_pad not in AUTO_PADS:
        cx.bad(f"auto_pad={auto_pad!r} is not one of {', '.join(AUTO_PADS)}")
    strides, dilations = strides or (1,) * n, dilations or (1,) * n
    extra = output_padding or (0,) * n
    if not len(strides) == len(dilations) == len(extra) == len(kernel) == n:
        cx.bad(f"attributes do not fit {n} spatial axes")
    full = [
        (d - 1) * s + k * (f - 1) + 1 + e
        for d, s, k, f, e in zip(space, strides, dilations, kernel, extra, strict=True)
    ]
    wanted: Sequence[Dim] = output_shape[-n:] if output_shape else ()
    if not wanted and auto_pad.startswith("SAME"):
        wanted = [d * s for d, s in zip(space, strides, strict=True)]
    chosen = _transposed_pads(full, wanted, auto_pad) if wanted else pads or (0,) * 2 * n
    return cx.b.conv_transpose(
        *([x, w] if bias is None else [x, w, bias]),
        strides=strides,
        dilations=dilations,
        pads=chosen,
        groups=group,
        output_padding=extra if any(extra) else (),
    )


def _transposed_pads(full: Sequence[Dim], out: Sequence[Dim], auto_pad: str) -> list[Dim]:
    """Pads that cut the full result to `out`; the odd one goes above for SAME_UPPER only."""
    total = [f - o for f, o in zip(full, out, strict=True)]
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return [*less, *more] if auto_pad == "SAME_UPPER" else [*more, *less]


@onnx_op("Col2Im", since=18)
def col2im(
    cx: Cx,
    x: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """Columns [N, C * block, L] added up into an image: a transposed convolution with ones."""
    image, block = (index_list(cx, v, "a shape") for v in (image_shape, block_shape))
    n, size = len(block), math.prod(block)
    strides, dilations = strides or (1,) * n, dilations or (1,) * n
    pads = pads or (0,) * 2 * n
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, block, strict=True)]
    room = [i + pads[k] + pads[n + k] - reach[k] for k, i in enumerate(image)]
    grid = [r // s + 1 for r, s in zip(room, strides, strict=True)]
    x = fitted(cx, x, (*cx.dims(x)[:2], math.prod(grid)))
    batch, rows, _ = cx.dims(x)
    channels = static(cx, [rows], "the rows")[0] // size
    if size > 4096 or channels > 4096:
        cx.fail(f"{channels} channels of blocks of {size} are too many")
    one_hot = np.tile(np.eye(size), (channels, 1)).reshape(channels * size, 1, *block)
    return cx.b.conv_transpose(
        cx.b.reshape(x, dims=(batch, rows, *grid)),
        cx.b.const(one_hot, cx.type(x).dtype.name),
        strides=strides,
        dilations=dilations,
        pads=pads,
        groups=channels,
        output_padding=[r % s for r, s in zip(room, strides, strict=True)],
    )
