"""Convolutions by few taps at stride 1 with fewer products: Winograd's F(4x4, 3x3) and others.

Tiles of the image and the taps are transformed, multiplied as matrices over the channels, and
transformed back. Rounding grows (`cook_toom.growth` says how much: 1.6 times a running sum's with
F(4x4, 3x3), 6.9 times with F(6x6, 3x3)); an infinity or NaN spoils its whole tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.ir import nest
from cuvil.ir.build import is_constant
from cuvil.ir.dims import Dim, ceil_div, literal
from cuvil.ir.names import Operation, Value
from cuvil.ir.pool import Constant, Pool
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.kernel import Draft, Kernel
from cuvil.plan.layout import Layouts
from cuvil.plan.packing import pack_panels
from cuvil.plan.templates.contract import PANEL, packed_kernel
from cuvil.plan.templates.cook_toom import growth, matrices
from cuvil.plan.templates.epilogue import epilogue
from cuvil.rewrite.winograd_cost import choose, frequencies, pixels_of, taps_of, tiles_of

_NARROW = 16  # columns of a panel whose products are one vector wide, with twice the rows in a pass
_ONE_PASS = range(15, 29)  # tiles that then take one pass over the taps, and two passes otherwise
_FAR_TAPS = 1 << 22  # bytes that come from memory: only then is one pass faster

_Taps = tuple[int, int, tuple[int, int]]


@dataclass(frozen=True)
class TransformedTaps:
    """Weights [N, C, taps...] as [panel][frequency][C][columns]: in the order in which they are
    read.

    m: rows and columns of the result per tile; taps: rows and columns of the filter; panel: columns
    per panel.
    """

    n: int
    channels: int
    m: tuple[int, int]
    taps: tuple[int, int]
    panel: int = PANEL

    @property
    def size(self) -> Dim:
        columns = -(-self.n // self.panel) * self.panel
        return columns * self.channels * frequencies(self.m, self.taps)

    def apply(self, weights: np.ndarray) -> np.ndarray:
        """The transformed taps, computed in float64."""
        down, across = (
            np.array(matrices(m, taps)[1], np.float64)
            for m, taps in zip(self.m, self.taps, strict=True)
        )
        shaped = weights.reshape(self.n, self.channels, *self.taps).astype(np.float64)
        found = np.einsum("ik,nckl,jl->ijcn", down, shaped, across, optimize=True)
        flat = found.reshape(-1, self.channels, self.n).astype(np.float32)
        return np.ascontiguousarray(pack_panels(flat, self.panel).swapaxes(0, 1)).reshape(-1)

    def constant(self, source: Constant, pool: Pool) -> Constant:
        """The transformed taps as a recipe of the pool."""
        size = self.size
        assert isinstance(size, int)
        return pool.add_recipe(
            "winograd",
            {"m": self.m, "taps": self.taps, "panel": self.panel},
            [source],
            "f32",
            (size,),
            lambda arrays: self.apply(arrays[0]),
        )

    def kernel(self, name: str) -> tuple[nest.KernelOp, Dim]:
        """Taps that only the run knows are not transformed: never called."""
        raise AssertionError("Winograd's convolutions have constant taps")


@dataclass(frozen=True)
class Match:
    """A convolution for the template, its image padded already."""

    taps: Value
    weights: TransformedTaps


def _match(op: Operation, layouts: Layouts) -> Match | None:
    if not _fits(op):
        return None
    n, channels, both = taps = _taps(op)
    m = choose(pixels_of(tensor_type(op.results[0]).dims), both, channels, n)
    return _match_of(op, taps, m) if m else None


def _match_of(op: Operation, taps: _Taps, m: tuple[int, int]) -> Match:
    n, channels, both = taps
    images, rows, columns = pixels_of(tensor_type(op.results[0]).dims)
    tiles = images * ceil_div(rows, m[0]) * ceil_div(columns, m[1])
    far = 4 * frequencies(m, both) * channels * n >= _FAR_TAPS
    panel = _NARROW if far and tiles in _ONE_PASS else PANEL
    return Match(op.operands[1], TransformedTaps(n, channels, m, both, panel))


def _fits(op: Operation) -> bool:
    attrs, x = attrs_of(op), tensor_type(op.operands[0])
    plain = attrs.layout == "channels_last" and not any(attrs.pads) and attrs.groups == 1
    if not plain or len(op.operands) != 2 or x.rank not in (3, 4):
        return False
    steps = (*attrs.strides, *attrs.dilations)
    return all(s == 1 for s in steps) and is_constant(op.operands[1])


def _taps(op: Operation) -> _Taps:
    """Output channels, channels, and rows and columns of the filter, which is a constant."""
    n, channels, *taps = (literal(d) for d in tensor_type(op.operands[1]).dims)
    return n, channels, taps_of(taps)


def ways(op: Operation) -> dict[str, Match]:
    """What `MATCHERS` could give for other tiles, by name, whatever it costs."""
    if op.name != "cuvil.conv" or not _fits(op):
        return {}
    n, channels, both = taps = _taps(op)
    return {f"winograd {m[0]}x{m[1]}": _match_of(op, taps, m) for m in tiles_of(both, channels, n)}


DTYPES = frozenset({"f32"})
MATCHERS = {"cuvil.conv": _match}


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
        "tile": m.weights.m,
        "taps": m.weights.taps,
        "image": [*pixels_of(x.dims), *_steps(x_strides)],
        "result": [*pixels_of(out.dims)[1:], *_steps(c_strides)],
        "channels": [m.weights.channels, m.weights.n],
        "panel": [m.weights.panel],
    }
    walked = [0, 1, 2] if out.rank == 4 else [0, None, 1]
    block = epilogue(draft, walked, out.rank, None)
    operands = anchor.operands[0], anchor.operands[1]
    return packed_kernel(draft, name, "winograd", spec, block, operands, m.weights)


def report(kernel: nest.KernelOp) -> dict[str, Any] | None:
    """Of a kernel of this template, for people: the results of a tile, the taps, and the error over
    that of one running sum. None of others."""
    op = kernel.body.block.first_op
    if not isinstance(op, nest.TemplateOp) or op.kind.data != "winograd":
        return None
    m, taps = (op.spec.data[key].data for key in ("tile", "taps"))  # type: ignore[attr-defined]
    return {"tile": m, "taps": taps, "error_growth": round(growth(m, taps), 2)}


def _steps(strides: Sequence[Dim]) -> list[Dim]:
    """Strides of images, rows and pixels; a single row has none to go to."""
    return list(strides[:3]) if len(strides) == 4 else [strides[0], 0, strides[1]]
