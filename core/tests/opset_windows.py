"""Convolutions, pools and resampling at every version of theirs."""

from __future__ import annotations

from itertools import product

import numpy as np
from onnx_models import f32, i64
from opset_example import Examples

IMAGE = f32(np.random.default_rng(7).permutation(50)).reshape(1, 2, 5, 5)
RAMP = f32(range(1, 17)).reshape(1, 1, 4, 4)

EXAMPLES = Examples()
node = EXAMPLES.node


def _windows(x, kernel, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), extra=0):
    """[out_h, out_w] -> the elements [N, C, ...] of every window, those in pads left out.

    extra: how far a last window may reach beyond the pads.
    """
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    sizes = [
        (n + lo + hi + extra - r) // s + 1
        for n, lo, hi, r, s in zip(x.shape[2:], pads[:2], pads[2:], reach, strides, strict=True)
    ]
    found = np.empty(sizes, object)
    for i, j in product(*map(range, sizes)):
        rows, columns = (
            [p for p in range(at * s - lo, at * s - lo + r, d) if 0 <= p < n]
            for at, s, lo, r, d, n in zip(
                (i, j), strides, pads[:2], reach, dilations, x.shape[2:], strict=True
            )
        )
        found[i, j] = x[:, :, rows][..., columns].reshape(*x.shape[:2], -1)
    return found


def _pooled(function, windows):
    rows = [[function(w) for w in row] for row in windows]
    return f32(np.moveaxis(rows, (0, 1), (2, 3)))


def _mean(w):
    return w.mean(-1)


WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2]}
PADS = {"pads": [1, 1, 0, 1]}
PLAIN, PARTLY = _windows(IMAGE, (3, 3), (2, 2)), _windows(IMAGE, (3, 3), (2, 2), (1, 1, 0, 1))

# AveragePool: pads never count in opset 1; ceil_mode comes with 10, dilations with 19.
AVERAGES = (1, 7, 10, 11, 19, 22)
node("AveragePool", AVERAGES, [IMAGE], _pooled(_mean, PLAIN), **WINDOW)
node("AveragePool", AVERAGES, [IMAGE], _pooled(_mean, PARTLY), **WINDOW, **PADS)
node("AveragePool", AVERAGES[1:], [IMAGE], _pooled(lambda w: w.sum(-1) / 9, PARTLY),
     count_include_pad=1, **WINDOW, **PADS)  # fmt: skip
for name, whole in (("SAME_UPPER", (0, 0, 1, 1)), ("SAME_LOWER", (1, 1, 0, 0))):
    expected = _pooled(_mean, _windows(RAMP, (3, 3), (2, 2), whole))
    node("AveragePool", AVERAGES, [RAMP], expected, auto_pad=name, **WINDOW)
CEILED = f32([[[[6, 7.5], [12, 13.5]]]])
node("AveragePool", AVERAGES[2:], [RAMP], CEILED, ceil_mode=1, **WINDOW)
node("AveragePool", AVERAGES[2:], [RAMP], f32([[[[14 / 9, 10 / 3, 2], [19 / 3, 11, 6],
     [4.5, 7.5, 4]]]]), ceil_mode=1, count_include_pad=1, pads=[1] * 4, **WINDOW)  # fmt: skip
SPREAD = _windows(IMAGE, (2, 2), dilations=(2, 2))
node("AveragePool", (19, 22), [IMAGE], _pooled(_mean, SPREAD), kernel_shape=[2, 2],
     dilations=[2, 2])  # fmt: skip

# MaxPool: positions come with opset 8, ceil_mode and dilations with 10, 8-bit integers with 12.
MAXIMA = (1, 8, 10, 11, 12, 22)
node("MaxPool", MAXIMA, [IMAGE], _pooled(lambda w: w.max(-1), PARTLY), **WINDOW, **PADS)
for order, places in ((0, [[5, 7], [13, 15]]), (1, [[5, 13], [7, 15]])):
    node("MaxPool", MAXIMA[1:], [RAMP], f32([[[[6, 8], [14, 16]]]]), i64([[places]]),
         kernel_shape=[2, 2], strides=[2, 2], storage_order=order)  # fmt: skip
node("MaxPool", MAXIMA[2:], [RAMP], f32([[[[11, 12], [15, 16]]]]), ceil_mode=1, **WINDOW)
node("MaxPool", MAXIMA[2:], [IMAGE], _pooled(lambda w: w.max(-1), SPREAD), kernel_shape=[2, 2],
     dilations=[2, 2])  # fmt: skip
node("MaxPool", (12, 22), [RAMP.astype(np.int8)], np.array([[[[6, 8], [14, 16]]]], np.int8),
     kernel_shape=[2, 2], strides=[2, 2])  # fmt: skip
node("MaxUnpool", (9, 11, 22), [f32([[[[5, 6], [7, 8]]]]), i64([[[[5, 7], [13, 15]]]])],
     f32([[0, 0, 0, 0], [0, 5, 0, 6], [0, 0, 0, 0], [0, 7, 0, 8]])[None, None],
     kernel_shape=[2, 2], strides=[2, 2])  # fmt: skip

# LpPool: p is a float in opset 1; ceil_mode and dilations come with 18.
CUBES = _pooled(lambda w: (np.abs(w) ** 3).sum(-1) ** (1 / 3), PLAIN)
node("LpPool", [1], [IMAGE], CUBES, p=3.0, **WINDOW)
node("LpPool", (2, 11, 18, 22), [IMAGE], CUBES, p=3, **WINDOW)
SQUARES = _pooled(lambda w: np.sqrt((w * w).sum(-1)), PARTLY)
node("LpPool", (1, 2, 11, 18, 22), [IMAGE], SQUARES, **WINDOW, **PADS)
node("LpPool", (18, 22), [IMAGE], _pooled(lambda w: np.sqrt((w * w).sum(-1)), SPREAD),
     kernel_shape=[2, 2], dilations=[2, 2])  # fmt: skip
GLOBAL = (2, 3)
node("GlobalAveragePool", (1, 22), [IMAGE], IMAGE.mean(GLOBAL, keepdims=True))
node("GlobalMaxPool", (1, 22), [IMAGE], IMAGE.max(GLOBAL, keepdims=True))
node("GlobalLpPool", (1, 2, 22), [IMAGE], np.sqrt((IMAGE**2).sum(GLOBAL, keepdims=True)))
node("GlobalLpPool", [1], [IMAGE], (IMAGE**1.5).sum(GLOBAL, keepdims=True) ** f32(1 / 1.5), p=1.5)
node("GlobalLpPool", (2, 22), [IMAGE], IMAGE.sum(GLOBAL, keepdims=True), p=1)

# Regions: output_half_pixel is all there is before opset 16.
node("MaxRoiPool", (1, 22), [RAMP, f32([[0, 0, 0, 3, 3], [0, 1, 1, 2, 3]])],
     f32([[[[6, 8], [14, 16]]], [[[10, 11], [14, 15]]]]), pooled_shape=[2, 2])  # fmt: skip
node("MaxRoiPool", (1, 22), [RAMP, f32([[0, 2, 2, 6, 6]])], f32([[[[11]]]]),
     pooled_shape=[1, 1], spatial_scale=0.25)  # fmt: skip
REGION, WHICH = f32([[0, 0, 2, 2]]), i64([0])
AT_CENTRES = f32([[[[3.5, 4.5], [7.5, 8.5]]]])  # the pixels 0.5 and 1.5, both ways
node("RoiAlign", (10,), [RAMP, REGION, WHICH], AT_CENTRES, output_height=2, output_width=2,
     sampling_ratio=1)  # fmt: skip
node("RoiAlign", (16, 22), [RAMP, REGION, WHICH], AT_CENTRES, output_height=2, output_width=2,
     sampling_ratio=1, coordinate_transformation_mode="output_half_pixel")  # fmt: skip
node("RoiAlign", (16, 22), [RAMP, REGION, WHICH], f32([[[[1, 2], [5, 6]]]]), output_height=2,
     output_width=2, sampling_ratio=1)  # fmt: skip

# Convolutions changed only in their types, and in what an empty attribute means.
FILTERS = f32(np.random.default_rng(8).standard_normal((3, 2, 3, 3)))


def _conv(x, w, stride, low, high):
    padded = np.pad(x.astype(float), [(0, 0), (0, 0), (low, high), (low, high)])
    size = (padded.shape[2] - w.shape[2]) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], size, size))
    for i, j in product(range(size), repeat=2):
        part = padded[:, :, i * stride : i * stride + 3, j * stride : j * stride + 3]
        y[:, :, i, j] = np.einsum("nchw,ochw->no", part, w)
    return f32(y)


def _conv_transpose(x, w, stride, pad):
    n, h = x.shape[0], x.shape[2]
    y = np.zeros((n, w.shape[1], stride * (h - 1) + 3, stride * (h - 1) + 3))
    for i, j in product(range(h), repeat=2):
        spread = np.einsum("nc,cohw->nohw", x[:, :, i, j], w)
        y[:, :, i * stride : i * stride + 3, j * stride : j * stride + 3] += spread
    return f32(y[:, :, pad : y.shape[2] - pad, pad : y.shape[3] - pad])


BIAS = f32([1, -2, 3])
node("Conv", (1, 11, 22), [IMAGE, FILTERS, BIAS],
     _conv(IMAGE, FILTERS, 2, 1, 1) + BIAS[:, None, None], strides=[2, 2], pads=[1] * 4,
     rtol=1e-4)  # fmt: skip
node("Conv", (1, 11, 22), [RAMP, FILTERS[:1, :1]], _conv(RAMP, FILTERS[:1, :1], 1, 1, 1),
     auto_pad="SAME_UPPER", rtol=1e-4)  # fmt: skip
node("ConvTranspose", (1, 11, 22), [IMAGE, FILTERS[:2]], _conv_transpose(IMAGE, FILTERS[:2], 2, 1),
     strides=[2, 2], pads=[1] * 4, rtol=1e-4)  # fmt: skip
OFFSETS = np.zeros((1, 18, 3, 3), np.float32)
node("DeformConv", (19, 22), [IMAGE, FILTERS, OFFSETS], _conv(IMAGE, FILTERS, 1, 0, 0), rtol=1e-4)
SHIFTED = OFFSETS.copy()
SHIFTED[:, ::2] = 1  # every tap one row lower
LOWER = np.concatenate([IMAGE[:, :, 1:], np.zeros_like(IMAGE[:, :, :1])], 2)
node("DeformConv", (19, 22), [IMAGE, FILTERS, SHIFTED], _conv(LOWER, FILTERS, 1, 0, 0), rtol=1e-4)

# Sampling on a grid: opset 16 calls linear and cubic bilinear and bicubic.
GRID = f32([[[[-1, -1], [1, 1], [0, 0], [3, 0]]]])
for names, opsets in ((("bilinear", "nearest", "bicubic"), (16,)),
                      (("linear", "nearest", "cubic"), (20, 22))):  # fmt: skip
    linear, nearest, cubic = names
    node("GridSample", opsets, [RAMP, GRID], f32([[[[1, 16, 8.5, 0]]]]), mode=linear,
         align_corners=1)  # fmt: skip
    node("GridSample", opsets, [RAMP, GRID[:, :, :2]], f32([[[[1, 16]]]]), mode=nearest,
         align_corners=1)  # fmt: skip
    node("GridSample", opsets, [RAMP, GRID], f32([[[[1, 16, 8.5, 10]]]]), mode=linear,
         align_corners=1, padding_mode="border")  # fmt: skip
    node("GridSample", opsets, [RAMP, GRID[:, :, 2:3]], f32([[[[8.5]]]]), mode=cubic)
node("GridSample", (16, 20, 22), [RAMP, GRID], f32([[[[0.25, 4, 8.5, 0]]]]))

# Upsample: two scales in opset 1, an attribute in 7, an input in 9; positions are asymmetric.
SMALL = f32([[[[1, 2], [3, 4]]]])
NEAREST = f32([[1, 1, 1, 2, 2, 2], [1, 1, 1, 2, 2, 2], [3, 3, 3, 4, 4, 4], [3, 3, 3, 4, 4, 4]])
LINEAR = f32([[1, 1.5, 2, 2], [2, 2.5, 3, 3], [3, 3.5, 4, 4], [3, 3.5, 4, 4]])
node("Upsample", [1], [SMALL], NEAREST[None, None], height_scale=2.0, width_scale=3.0)
node("Upsample", [1], [SMALL], LINEAR[None, None], height_scale=2.0, width_scale=2.0,
     mode="bilinear")  # fmt: skip
node("Upsample", [7], [SMALL], NEAREST[None, None], scales=[1.0, 1.0, 2.0, 3.0])
node("Upsample", [7], [SMALL], LINEAR[None, None], scales=[1.0, 1.0, 2.0, 2.0], mode="linear")
node("Upsample", [9], [SMALL, f32([1, 1, 2, 3])], NEAREST[None, None], fix=[1])
node("Upsample", [9], [SMALL, f32([1, 1, 2, 2])], LINEAR[None, None], fix=[1], mode="linear")

# Resize: in opset 10 as Upsample, but nearest takes the pixel above where an axis shrinks.
WIDE = f32(range(1, 9)).reshape(1, 1, 2, 4)
node("Resize", [10], [SMALL, f32([1, 1, 2, 3])], NEAREST[None, None], fix=[1])
node("Resize", [10], [SMALL, f32([1, 1, 2, 2])], LINEAR[None, None], fix=[1], mode="linear")
node("Resize", [10], [WIDE, f32([1, 1, 0.6, 0.6])], f32([[[[1, 3]]]]), fix=[1])
node("Resize", [10], [WIDE, f32([1, 1, 2, 0.6])], f32([[[[1, 3], [1, 3], [5, 7], [5, 7]]]]),
     fix=[1])  # fmt: skip
node("Resize", [10], [WIDE, f32([1, 1, 0.6, 0.6])], f32([[[[1, 1 + 1 / 0.6]]]]), fix=[1],
     mode="linear")  # fmt: skip
NO_ROI, NO_SCALES = f32([]), f32([])
RESIZES = (11, 13, 18, 19)
for opset in RESIZES:
    roi = NO_ROI if opset == 11 else None
    scales, sizes = f32([1, 1, 2, 2]), i64([1, 1, 4, 4])
    none = NO_SCALES if opset == 11 else None
    pick = [0, 1, 2] if opset == 11 else [0, 2]
    pick_sizes = [1, 2, 3] if opset == 11 else [3]
    half = f32([[1, 1.25, 1.75, 2], [1.5, 1.75, 2.25, 2.5], [2.5, 2.75, 3.25, 3.5],
                [3, 3.25, 3.75, 4]])[None, None]  # fmt: skip
    corners = f32([[1, 4 / 3, 5 / 3, 2], [5 / 3, 2, 7 / 3, 8 / 3], [7 / 3, 8 / 3, 3, 10 / 3],
                   [3, 10 / 3, 11 / 3, 4]])[None, None]  # fmt: skip
    fixed = [k for k in pick if k]
    node("Resize", [opset], [SMALL, roi, scales], half, fix=fixed, mode="linear", rtol=1e-4)
    node("Resize", [opset], [SMALL, roi, none, sizes], half, fix=pick_sizes, mode="linear")
    node("Resize", [opset], [SMALL, roi, scales], LINEAR[None, None], fix=fixed, mode="linear",
         coordinate_transformation_mode="asymmetric")  # fmt: skip
    node("Resize", [opset], [SMALL, roi, none, sizes], corners, fix=pick_sizes, mode="linear",
         coordinate_transformation_mode="align_corners")  # fmt: skip
    node("Resize", [opset], [WIDE, roi, none, i64([1, 1, 1, 2])], f32([[[[1, 3]]]]),
         fix=pick_sizes)  # fmt: skip
    node("Resize", [opset], [WIDE, roi, none, i64([1, 1, 1, 2])], f32([[[[6, 8]]]]),
         fix=pick_sizes, nearest_mode="ceil")  # fmt: skip
    node("Resize", [opset], [RAMP, f32([0, 0, 0.25, 0.25, 1, 1, 0.75, 0.75]), none,
         i64([1, 1, 2, 2])], f32([[[[4.75, 6.25], [10.75, 12.25]]]]),
         fix=sorted({*pick_sizes, 1}), mode="linear",
         coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
node("Resize", [11], [RAMP, NO_ROI, NO_SCALES, i64([1, 1, 2, 2])], f32([[[[6, 8], [14, 16]]]]),
     fix=[1, 2, 3], coordinate_transformation_mode="tf_half_pixel_for_nn",
     nearest_mode="floor")  # fmt: skip
node("Resize", (18, 19), [RAMP, None, None, i64([2])], f32([1.5, 3.5])[None, None, None]
     + f32([0, 4, 8, 12])[:, None], fix=[3], mode="linear", axes=[-1])  # fmt: skip
