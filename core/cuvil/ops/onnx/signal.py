"""Fourier transforms as products with constant matrices, and windows."""

from __future__ import annotations

import numpy as np

from cuvil.ir.dims import Dim, SymDim, literal
from cuvil.ops.compose.helpers import axis_in, index_list, static
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.movement import padded, sliced
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.onnx.resize import known_floats

MOST_POINTS = 4096  # of a transform: its matrix has 4 * n * n numbers


def matrix(n: int, kept: int, parts: int, inverse: bool, real: bool) -> np.ndarray:
    """[n, parts, kept, 1 or 2] in f64: from a signal's parts to those of its transform.

    parts: 1 for real signals. kept: how many points of the transform. real: only its real part.
    """
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(kept)) / n
    cos, sin = np.cos(angle), np.sin(angle) * (1 if inverse else -1)
    out = np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1)
    out = out[:, :parts, :, : 1 if real else 2]
    return out / n if inverse else out


def half_spectrum(n: int, kept: int) -> np.ndarray:
    """[kept, 2, n, 1]: from the first half of a spectrum to the real signal of n points."""
    full = matrix(n, n, 2, True, True)[:kept]
    mirrored = np.arange(1, kept) + 0
    mirrored = mirrored[(n - mirrored) >= kept]
    extra = matrix(n, n, 2, True, True)
    full[mirrored, 0] += extra[n - mirrored, 0]
    full[mirrored, 1] -= extra[n - mirrored, 1]
    return full


def transform(cx: Cx, x: Value, axis: int, table: np.ndarray) -> Value:
    """x [..., n at axis, ..., parts] times a table [n, parts, kept, out]."""
    return _product(cx, x, axis, cx.b.const(table, cx.type(x).dtype.name))


def _product(cx: Cx, x: Value, axis: int, weights: Value) -> Value:
    rank = cx.type(x).rank
    letters = "abcdefghijkl"[: rank - 2]
    source = letters[:axis] + "n" + letters[axis:] + "p"
    result = letters[:axis] + "m" + letters[axis:] + "q"
    return cx.b.contract(x, weights, spec=f"{source},npmq->{result}")


def _dft(cx: Cx, x: Value, length: Value, axis: int, inverse: int, onesided: int) -> Value:
    dims, rank = list(cx.dims(x)), cx.type(x).rank
    if rank < 2 or dims[-1] not in (1, 2) or not cx.type(x).dtype.is_float:
        cx.bad("takes a float tensor whose last axis has a real and perhaps an imaginary part")
    at = axis_in(cx, axis, rank)
    if at == rank - 1:
        cx.bad("the last axis holds the parts of a number")
    if isinstance(dims[at], SymDim) and not (inverse and onesided):
        n = dims[at] if length is None else index_list(cx, length, "dft_length")[0]
        return _dft_of_any(cx, _resized(cx, x, at, dims[at], n), at, n, inverse, onesided)
    have = static(cx, [dims[at]], "the transformed axis")[0]
    n = have if length is None else index_list(cx, length, "dft_length")[0]
    half = n // 2 + 1
    if inverse and onesided:
        n = 2 * (have - 1) if length is None else n
        half = n // 2 + 1
    if not 1 <= n <= MOST_POINTS:
        cx.fail(f"a transform of {n} points; the most are {MOST_POINTS}")
    wanted = half if inverse and onesided else n
    x = _resized(cx, x, at, have, wanted)
    if inverse and onesided:
        return transform(cx, x, at, half_spectrum(n, half))
    kept = half if onesided else n
    parts = 1 if dims[-1] == 1 else 2
    return transform(cx, x, at, matrix(n, kept, parts, bool(inverse), False))


def _dft_of_any(cx: Cx, x: Value, axis: int, n: Dim, inverse: int, onesided: int) -> Value:
    """A transform of n points whose matrix a run makes, since only it knows n."""
    cx.assume(n, 1, MOST_POINTS)
    b, kept, name = cx.b, n // 2 + 1 if onesided else n, cx.type(x).dtype.name
    turns = b.mul(b.iota(dims=(n, 1), axis=0), b.iota(dims=(1, kept), axis=1))
    points = b.dims(dims=(n,), shape=(), dtype="i64")
    size = b.cast(points, to="f64")
    turn = b.div(b.cast(b.mod(turns, points), to="f64"), size)
    angle = b.mul(turn, b.scalar(2 * np.pi, turn))
    cos, sin = b.cos(angle), b.sin(angle)
    if inverse:
        cos, sin = b.div(cos, size), b.neg(b.div(sin, size))
    rows = [[cos, b.neg(sin)], [sin, cos]][: literal(cx.dims(x)[-1])]
    parts = [b.concat(*(b.reshape(v, dims=(n, 1, kept, 1)) for v in row), axis=3) for row in rows]
    table = b.concat(*parts, axis=1) if len(parts) == 2 else parts[0]
    return _product(cx, x, axis, b.cast(table, to=name))


def _resized(cx: Cx, x: Value, axis: int, have: Dim, wanted: Dim) -> Value:
    """The axis cut, or filled up with zeros."""
    if isinstance(have, int) and isinstance(wanted, int) and wanted < have:
        return sliced(cx, x, [0], [wanted], [axis], [1])
    rank = cx.type(x).rank
    pads: list[Dim] = [0] * (2 * rank)
    pads[rank + axis] = wanted - have
    return padded(cx, x, pads, cx.b.scalar(0, x), "constant")


@onnx_op("DFT", since=17)
def dft_attribute(
    cx: Cx,
    x: Value,
    length: Value = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """The axis as an attribute, before opset 20."""
    return _dft(cx, x, length, axis, inverse, onesided)


@onnx_op("DFT", since=20)
def dft(
    cx: Cx,
    x: Value,
    length: Value = None,
    axis: Value = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """The discrete Fourier transform of an axis; onesided keeps the first half of a spectrum."""
    at = -2 if axis is None else index_list(cx, axis, "axis")[0]
    return _dft(cx, x, length, at, inverse, onesided)


@onnx_op("STFT", since=17)
def stft(
    cx: Cx,
    x: Value,
    step: Value,
    window: Value = None,
    length: Value = None,
    *,
    onesided: int = 1,
) -> Value:
    """Fourier transforms [B, frames, bins, 2] of windows of a signal [B, N, parts]."""
    hop = index_list(cx, step, "frame_step")[0]
    if length is not None:
        n = index_list(cx, length, "frame_length")[0]
    else:
        n = static(cx, cx.dims(window) if window is not None else (), "the window")[0]
    batch, samples, *last = cx.dims(x)
    if not 1 <= n <= MOST_POINTS or hop < 1:
        cx.fail(f"frames of {n} every {hop}; the most are {MOST_POINTS}")
    count = (samples - n) // hop + 1
    first = cx.b.mul(cx.b.iota(dims=(count, 1), axis=0), cx.b.scalar(hop, "i64"))
    frames = cx.b.gather(x, cx.b.add(first, cx.b.iota(dims=(1, n), axis=1)), axis=1)
    parts = last[0] if last else 1
    frames = cx.b.reshape(frames, dims=(batch, count, n, parts))
    if window is not None:
        frames = cx.b.mul(frames, cx.b.reshape(window, dims=(1, 1, n, 1)))
    kept = n // 2 + 1 if onesided else n
    return transform(cx, frames, 2, matrix(n, kept, 1 if parts == 1 else 2, False, False))


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(
    cx: Cx,
    bins: Value,
    length: Value,
    rate: Value,
    low: Value,
    high: Value,
    *,
    output_datatype: int = 1,
) -> Value:
    """Triangles [spectrogram bins, mel bins], evenly spaced in mels, from constants."""
    count, n, hertz = (index_list(cx, v, "a parameter")[0] for v in (bins, length, rate))
    ends = [known_floats(cx, v, "a frequency")[0] for v in (low, high)]
    if not (1 <= count <= MOST_POINTS and 1 <= n <= 16 * MOST_POINTS and hertz > 0):
        cx.bad(f"{count} mel bins of {n} points")
    first, last = (2595 * np.log10(1 + f / 700) for f in ends)
    mels = np.arange(count + 2) * ((last - first) / (count + 2)) + first
    edges = ((n + 1) * 700 * (10 ** (mels / 2595) - 1) // hertz).astype(np.int64)
    table = np.zeros((n // 2 + 1, count))
    for k in range(count):
        lower, centre, upper = edges[k : k + 3]
        if lower == centre:
            table[centre, k] = 1
        else:
            table[lower : centre + 1, k] = np.arange(centre + 1 - lower) / (centre - lower)
        if upper > centre:
            table[centre:upper, k] = (upper - np.arange(centre, upper)) / (upper - centre)
    return cx.b.const(table, cx.dtype(output_datatype))
