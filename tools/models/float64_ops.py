"""Operators of the float64 evaluation that onnx's reference rounds to float32 or loops over.

Formulas are those of the ONNX operator documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx.reference.op_run import OpRun


def _pairs(pads: Sequence[int] | None, rank: int) -> list[tuple[int, int]]:
    """(before, after) per spatial axis from the attribute's begins, then ends."""
    flat = list(pads) if pads else [0] * (2 * rank)
    return [(flat[axis], flat[rank + axis]) for axis in range(rank)]


def _windows(x, kernel, strides, dilations, pads, fill):
    """View [N, C, *out, *kernel] of the padded input's windows."""
    rank = len(kernel)
    padded = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    extent = [dilations[axis] * (kernel[axis] - 1) + 1 for axis in range(rank)]
    view = sliding_window_view(padded, extent, axis=tuple(range(2, 2 + rank)))
    steps = [slice(None, None, stride) for stride in strides]
    taps = [slice(None, None, dilation) for dilation in dilations]
    return view[(slice(None), slice(None), *steps, *taps)]


class Conv(OpRun):
    """Cross-correlation over any number of spatial axes, by one matrix product a group."""

    def _run(
        self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None,
        pads=None, strides=None,
    ):  # fmt: skip
        if auto_pad not in (None, "NOTSET"):
            raise NotImplementedError(f"Conv with auto_pad {auto_pad}")
        rank, groups = w.ndim - 2, group or 1
        windows = _windows(
            x, w.shape[2:], strides or [1] * rank, dilations or [1] * rank, _pairs(pads, rank), 0
        )
        parts = [
            self._group(part, kernels)
            for part, kernels in zip(
                np.split(windows, groups, axis=1), np.split(w, groups), strict=True
            )
        ]
        y = np.concatenate(parts, axis=1)
        return (y if b is None else y + b.reshape(-1, *[1] * rank),)

    @staticmethod
    def _group(windows, kernels):
        """[N, C, *out, *kernel] with [M, C, *kernel] to [N, M, *out]."""
        rank = kernels.ndim - 2
        summed = [1, *range(2 + rank, 2 + 2 * rank)]
        y = np.tensordot(windows, kernels, axes=(summed, [1, *range(2, 2 + rank)]))
        return np.moveaxis(y, -1, 1)


class MaxPool(OpRun):
    """Maximum over windows; the second output (indices) is not computed."""

    def _run(
        self, x, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None,
        storage_order=None, strides=None,
    ):  # fmt: skip
        if auto_pad not in (None, "NOTSET") or ceil_mode:
            raise NotImplementedError("MaxPool with auto_pad or ceil_mode")
        rank = len(kernel_shape)
        windows = _windows(
            x, kernel_shape, strides or [1] * rank, dilations or [1] * rank,
            _pairs(pads, rank), -np.inf,
        )  # fmt: skip
        return (windows.max(axis=tuple(range(-rank, 0))),)


class AveragePool(OpRun):
    """Mean over windows, padding counted only with count_include_pad."""

    def _run(
        self, x, auto_pad=None, ceil_mode=None, count_include_pad=None, dilations=None,
        kernel_shape=None, pads=None, strides=None,
    ):  # fmt: skip
        if auto_pad not in (None, "NOTSET") or ceil_mode:
            raise NotImplementedError("AveragePool with auto_pad or ceil_mode")
        rank = len(kernel_shape)
        steps, gaps = strides or [1] * rank, dilations or [1] * rank
        edges, axes = _pairs(pads, rank), tuple(range(-rank, 0))
        total = _windows(x, kernel_shape, steps, gaps, edges, 0).sum(axis=axes)
        ones = np.ones((1, 1, *x.shape[2:]))
        fill = 1 if count_include_pad else 0
        return (total / _windows(ones, kernel_shape, steps, gaps, edges, fill).sum(axis=axes),)


class GlobalMaxPool(OpRun):
    """Maximum over all spatial axes, however many there are."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class LayerNormalization(OpRun):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, whatever stash_type says."""

    def _run(self, x, scale, bias=None, axis=None, epsilon=None, stash_type=None):
        axes = tuple(range(axis % x.ndim, x.ndim))
        centred = x - x.mean(axis=axes, keepdims=True)
        variance = (centred * centred).mean(axis=axes, keepdims=True)
        y = centred / np.sqrt(variance + epsilon) * scale
        return (y if bias is None else y + bias,)


class BatchNormalization(OpRun):
    """Inference only: onnx's takes a model of opset 9 to 13 to be in training."""

    def _run(self, x, scale, bias, mean, variance, epsilon=None, momentum=None, training_mode=None):
        if training_mode:
            raise NotImplementedError("BatchNormalization in training mode")
        factor = scale / np.sqrt(variance + epsilon)
        column = (-1, *[1] * (x.ndim - 2))
        return (x * factor.reshape(column) + (bias - mean * factor).reshape(column),)


class LRN(OpRun):
    """x / (bias + alpha / size * sum of squares over `size` channels around each) ** beta."""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        before = (size - 1) // 2
        edges = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)]
        squares = sliding_window_view(np.pad(x * x, edges), size, axis=1).sum(axis=-1)
        return (x / (bias + alpha / size * squares) ** beta,)


class Softmax(OpRun):
    """Over one axis; before opset 13 over all axes from it on."""

    def _run(self, x, axis=None):
        old = self.run_params["opsets"][""] < 13
        # The base class fills in the newest opset's default, so ask the node itself.
        given = [attribute.i for attribute in self.onnx_node.attribute if attribute.name == "axis"]
        first = given[0] if given else (1 if old else -1)
        axes = tuple(range(first % x.ndim, x.ndim)) if old else first
        powers = np.exp(x - x.max(axis=axes, keepdims=True))
        return (powers / powers.sum(axis=axes, keepdims=True),)


class Erf(OpRun):
    """The error function, element by element from the C library."""

    def _run(self, x):
        flat = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
        return (flat.reshape(x.shape),)


class Resize(OpRun):
    """Nearest neighbour only, `asymmetric` with `floor`: out[i] = in[floor(i / scale)]."""

    def _run(
        self, x, roi=None, scales=None, sizes=None, antialias=None, axes=None,
        coordinate_transformation_mode=None, cubic_coeff_a=None, exclude_outside=None,
        extrapolation_value=None, keep_aspect_ratio_policy=None, mode=None, nearest_mode=None,
    ):  # fmt: skip
        style = (mode, coordinate_transformation_mode, nearest_mode)
        if style != ("nearest", "asymmetric", "floor") or axes is not None or scales is None:
            raise NotImplementedError(f"Resize {style}")
        for axis, scale in enumerate(scales.tolist()):
            places = np.arange(math.floor(x.shape[axis] * scale)) / scale
            x = x.take(np.minimum(np.floor(places).astype(int), x.shape[axis] - 1), axis=axis)
        return (x,)


OPERATORS = (
    Conv,
    MaxPool,
    AveragePool,
    GlobalMaxPool,
    LayerNormalization,
    BatchNormalization,
    LRN,
    Softmax,
    Erf,
    Resize,
)
