"""Convolutions by 3x3 taps at stride 1 with fewer products: Winograd's F(2x2) and F(4x4).

Tiles of the image and the taps are transformed, multiplied as matrices over the channels, and
transformed back. Rounding grows: about twice the error of a plain sum for F(4x4), see
`cook_toom`; an infinity or NaN spoils its whole tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuvil.ir import nest
from cuvil.ir.build import is_constant
from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import template_op
from cuvil.ir.pool import Constant, Pool
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.kernel import Draft, Kernel, epilogue_inputs
from cuvil.plan.layout import Layouts
from cuvil.plan.packing import pack_panels
from cuvil.plan.templates.contract import PANEL, packed_read
from cuvil.plan.templates.cook_toom import TAPS, matrices
from cuvil.plan.templates.epilogue import epilogue

LEAST_CHANNELS = 16
_GAIN = 0.8  # of the plain sum's cost: with less to win, rounding is not worth it
_IMAGE_COST = 11  # multiply-adds that transforming one element of a tile costs as much as
_RESULT_COST = 6
_BYTE_COST = 4  # multiply-adds in the time in which a byte of weights comes from memory
_MOST_FREE_WEIGHTS = 1 << 22  # bytes, where the number of tiles is not known


@dataclass(frozen=True)
class TransformedTaps:
    """Weights [N, C, 3, 3] as [panel][frequency][C][PANEL]: in the order in which they are read."""

    n: int
    channels: int
    m: int

    @property
    def size(self) -> Dim:
        return -(-self.n // PANEL) * PANEL * self.channels * (self.m + TAPS - 1) ** 2

    def apply(self, taps: np.ndarray) -> np.ndarray:
        """The transformed taps, computed in float64."""
        g = np.array(matrices(self.m)[1], np.float64)
        shaped = taps.reshape(self.n, self.channels, TAPS, TAPS).astype(np.float64)
        frequencies = np.einsum("ik,nckl,jl->ijcn", g, shaped, g)
        flat = frequencies.reshape(-1, self.channels, self.n).astype(np.float32)
        return np.ascontiguousarray(pack_panels(flat, PANEL).swapaxes(0, 1)).reshape(-1)

    def constant(self, source: Constant, pool: Pool) -> Constant:
        """The transformed taps as a recipe of the pool."""
        size = self.size
        assert isinstance(size, int)
        return pool.add_recipe(
            "winograd", {"m": self.m, "panel": PANEL}, [source], "f32", (size,),
            lambda arrays: self.apply(arrays[0]),
        )  # fmt: skip

    def kernel(self, name: str) -> tuple[nest.KernelOp, Dim]:
        """Taps that only the run knows are not transformed: never called."""
        raise AssertionError("Winograd's convolutions have constant taps")


@dataclass(frozen=True)
class Match:
    """A convolution for the template, its image padded already."""

    taps: Value
    weights: TransformedTaps


def _match(op: Operation, layouts: Layouts) -> Match | None:
    attrs = attrs_of(op)
    x, w = tensor_type(op.operands[0]), tensor_type(op.operands[1])
    plain = attrs.layout == "channels_last" and not any(attrs.pads) and attrs.groups == 1
    if not plain or len(op.operands) != 2 or x.rank != 4 or tuple(w.dims[2:]) != (TAPS, TAPS):
        return None
    if any(s != 1 for s in (*attrs.strides, *attrs.dilations)) or not is_constant(op.operands[1]):
        return None
    n, channels = w.dims[:2]
    if not isinstance(n, int) or not isinstance(channels, int):
        return None
    m = choose(tensor_type(op.results[0]).dims[:3], channels, n)
    return Match(op.operands[1], TransformedTaps(n, channels, m)) if m else None


def choose(pixels: tuple[Dim, ...], channels: int, n: int) -> int:
    """Outputs per side of a tile: 4, 2, or 0 where the plain sum is as fast.

    pixels: images, rows and columns of the result.
    """
    if min(channels, n) < LEAST_CHANNELS:
        return 0
    images, rows, columns = pixels
    if not (isinstance(images, int) and isinstance(rows, int) and isinstance(columns, int)):
        few = 4 * (4 + TAPS - 1) ** 2 * channels * n <= _MOST_FREE_WEIGHTS
        return 4 if few else 2
    whole = TAPS * TAPS
    plain = max(images * rows * columns, _BYTE_COST * 4) * whole * channels * n
    costs = {m: _cost(m, images * -(-rows // m) * -(-columns // m), channels, n) for m in (4, 2)}
    best = min(costs, key=lambda m: costs[m])
    return best if costs[best] < _GAIN * plain else 0


def _cost(m: int, tiles: int, channels: int, n: int) -> int:
    """In multiply-adds; reading the weights from memory hides behind the products."""
    products = max(tiles, _BYTE_COST * 4) * channels * n
    return (m + TAPS - 1) ** 2 * (products + tiles * (_IMAGE_COST * channels + _RESULT_COST * n))


DTYPES = frozenset({"f32"})
MATCHERS = {"cuvil.conv": _match}


def reads_through(op: Operation, consumer: Operation) -> bool:
    """Views are kernels of their own."""
    return False


def reads_in_place(m: Match, value: Value) -> bool:
    """The image is read by strides, the taps are transformed."""
    return value is not m.taps


def writes_in_place(m: Match) -> bool:
    """Pixels are written anywhere; their channels are together."""
    return True


def build(draft: Draft, name: str, m: Match) -> Kernel:
    """The convolution with what is fused behind it; rows are (image, y, x), columns channels."""
    anchor = draft.group.anchor
    assert anchor is not None
    result = draft.group.root.results[0]
    x, out = tensor_type(anchor.operands[0]), tensor_type(result)
    x_strides = draft.layouts.strides(anchor.operands[0])
    c_strides = draft.layouts.strides(result)
    spec: dict[str, Sequence[Dim]] = {
        "tile": [m.weights.m],
        "image": [*x.dims[:3], *x_strides[:3]],
        "result": [*out.dims[1:3], *c_strides[:3]],
        "channels": [m.weights.channels, m.weights.n],
        "panel": [PANEL],
    }
    block = epilogue(draft, [0, 1, 2], out.rank, None)
    a, b = anchor.operands[:2]
    behind = epilogue_inputs(draft.group, draft.pool)
    packed, weights = packed_read(draft, b, b is a or b in behind)
    extra = [v for value, v in draft.reads.items() if value in behind]
    buffers = [draft.reads[a], weights, draft.writes[result], *extra]
    draft.block.add_op(template_op("winograd", spec, buffers, block))
    return draft.finish(name, 0, {packed: m.weights})
