"""Depthwise convolutions, channels last: one channel in, one out, vectors along the channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuvil.ir import nest
from cuvil.ir.dims import Dim, literal, product
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.nest_build import INDEX, NestBuilder, kernel_op
from cuvil.ir.pool import Constant, Pool
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.ir.types import BufferType
from cuvil.plan.kernel import Draft, Kernel
from cuvil.plan.layout import Layouts
from cuvil.plan.templates.contract import packed_kernel
from cuvil.plan.templates.epilogue import epilogue


@dataclass(frozen=True)
class ChannelsInside:
    """Weights [C, 1, KH, KW] as [KH, KW, C]."""

    channels: int
    taps: int
    dtype: str

    @property
    def size(self) -> Dim:
        return self.channels * self.taps

    def constant(self, source: Constant, pool: Pool) -> Constant:
        """The permuted weights as a recipe of the pool."""
        return pool.add_recipe(
            "channels_inside",
            {},
            [source],
            self.dtype,
            (literal(self.size),),
            lambda arrays: np.ascontiguousarray(
                arrays[0].reshape(self.channels, self.taps).T
            ).reshape(-1),
        )

    def kernel(self, name: str) -> tuple[nest.KernelOp, Dim]:
        """A kernel (source, permuted) for weights that only the run knows."""
        kind = BufferType.new(self.dtype)
        block = Block(arg_types=[kind, kind, INDEX])
        source, target, tap = block.args
        b = NestBuilder(block)
        with b.loop(0, self.channels, kind="parallel") as c:
            value = b.load(source, b.add(b.mul(c.iv, self.taps), tap))
            b.store(value, target, b.add(b.mul(tap, self.channels), c.iv))
        return kernel_op(name, self.taps, block), self.taps


@dataclass(frozen=True)
class Match:
    """A depthwise convolution with one or two spatial axes, its input padded already."""

    taps: Value
    weights: ChannelsInside


def _match(op: Operation, layouts: Layouts) -> Match | None:
    attrs = attrs_of(op)
    x, w = tensor_type(op.operands[0]), tensor_type(op.operands[1])
    if attrs.layout != "channels_last" or any(attrs.pads) or len(op.operands) != 2:
        return None
    one_to_one = attrs.groups == x.dims[-1] == w.dims[0] and w.dims[1] == 1
    if not one_to_one or attrs.groups == 1 or x.rank not in (3, 4):
        return None
    taps = product(w.dims[2:])
    channels = w.dims[0]
    if not isinstance(taps, int) or not isinstance(channels, int):
        return None
    return Match(op.operands[1], ChannelsInside(channels, taps, x.dtype.name))


DTYPES = frozenset({"f32"})
MATCHERS = {"cuvil.conv": _match}


def reads_in_place(m: Match, value: Value) -> bool:
    """The image is read by strides, the taps are packed."""
    return value is not m.taps


def writes_in_place(m: Match) -> bool:
    """Pixels are written anywhere; their channels are together."""
    return True


def build(draft: Draft, name: str, m: Match) -> Kernel:
    """The convolution with what is fused behind it; rows are (y, x), columns are channels."""
    anchor = draft.group.anchor
    assert anchor is not None
    attrs, result = attrs_of(anchor), draft.group.root.results[0]
    x, w = (tensor_type(v) for v in anchor.operands[:2])
    out = tensor_type(result)
    flat = x.rank == 3  # one spatial axis: a single row

    def two(values: tuple[Dim, ...], missing: Dim) -> list[Dim]:
        return [missing, *values] if flat else list(values)

    x_strides = draft.layouts.strides(anchor.operands[0])
    c_strides = draft.layouts.strides(result)
    spec = {
        "batch": [x.dims[0], x_strides[0], c_strides[0]],
        "out": two(out.dims[1:-1], 1),
        "channels": [out.dims[-1]],
        "kernel": two(w.dims[2:], 1),
        "a": two(tuple(x_strides[1:-1]), x_strides[0]),
        "c": two(tuple(c_strides[1:-1]), c_strides[0]),
        "stride": two(attrs.strides, 1),
        "dilation": two(attrs.dilations, 1),
    }
    walked: list[int | None] = [0, None, 1] if flat else [0, 1, 2]
    block = epilogue(draft, walked, out.rank, None)
    operands = anchor.operands[0], anchor.operands[1]
    return packed_kernel(draft, name, "depthwise", spec, block, operands, m.weights)
