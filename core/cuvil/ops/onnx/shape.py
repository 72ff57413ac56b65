"""Shapes as values, and operators that only rename the extents of a tensor."""

from __future__ import annotations

from cuvil.ir.dims import Dim, SymDim, product
from cuvil.ops.compose.helpers import (
    axes_in,
    axis_in,
    index_list,
    unsqueezed,
)
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import elements, shape_with_rest
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("Shape")
def shape(cx: Cx, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    """The extents of axes start .. end - 1, clamped to those there are."""
    dims = cx.dims(x)[start:end]
    return cx.b.dims(dims=dims, shape=(len(dims),), dtype="i64")


@onnx_op("Size")
def size(cx: Cx, x: Value) -> Value:
    """The number of elements."""
    return cx.b.dims(dims=(product(cx.dims(x)),), shape=(), dtype="i64")


@onnx_op("Reshape")
def reshape_attribute(
    cx: Cx, x: Value, *, shape: tuple[int, ...], consumed_inputs: tuple[int, ...] = ()
) -> Value:
    """The shape as an attribute, before opset 5."""
    return cx.b.reshape(x, dims=reshaped(cx, x, list(shape), allowzero=False))


@onnx_op("Reshape", since=5)
def reshape(cx: Cx, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    """Same elements; -1 is what is left, 0 the input's own extent unless `allowzero`."""
    if cx.known(shape) is None:
        numbers = elements(cx, shape, "the shape")
        return cx.b.reshape(x, dims=shape_with_rest(cx, cx.dims(x), numbers, not allowzero))
    wanted = cx.known_ints(shape, "the shape")
    return cx.b.reshape(x, dims=reshaped(cx, x, wanted, bool(allowzero)))


def reshaped(cx: Cx, x: Value, wanted: list[Dim], allowzero: bool) -> list[Dim]:
    """The extents that a Reshape asks for, with 0 and -1 replaced."""
    have = cx.dims(x)
    dims: list[Dim] = []
    for k, dim in enumerate(wanted):
        if dim == 0 and not allowzero:
            if k >= len(have):
                cx.bad(f"the shape copies extent {k} of an input of rank {len(have)}")
            dim = have[k]
        if isinstance(dim, int) and dim < -1:
            cx.bad(f"extent {dim} in the shape")
        dims.append(dim)
    open_ = [k for k, d in enumerate(dims) if d == -1]
    if len(open_) > 1:
        cx.bad("the shape has more than one -1")
    if open_:
        rest = [d for d in dims if d != -1]
        dims[open_[0]] = quotient(cx, list(have), rest)
    return dims


def quotient(cx: Cx, have: list[Dim], rest: list[Dim]) -> Dim:
    """The product of `have` over that of `rest`, equal symbols cancelled first."""
    over, under = list(have), []
    for dim in rest:
        if isinstance(dim, SymDim) and dim in over:
            over.remove(dim)
        else:
            under.append(dim)
    total, share = product(over), product(under)
    if isinstance(share, int):
        if share == 0:
            cx.bad("the shape has -1 beside an extent of 0")
        if isinstance(total, int) and total % share:
            cx.bad(f"{total} elements cannot be split into parts of {share}")
    return total // share


@onnx_op("Flatten")
def flatten(cx: Cx, x: Value, *, axis: int = 1) -> Value:
    """A matrix: the axes before `axis`, and the others."""
    dims, rank = cx.dims(x), cx.type(x).rank
    at = axis if axis == rank else axis_in(cx, axis, rank)
    return cx.b.reshape(x, dims=(product(dims[:at]), product(dims[at:])))


@onnx_op("Squeeze")
def squeeze_attribute(cx: Cx, x: Value, *, axes: tuple[int, ...] | None = None) -> Value:
    """Axes as an attribute, before opset 13."""
    dims = cx.dims(x)
    if axes is None:
        return _squeezed(cx, x, [k for k, d in enumerate(dims) if d == 1])
    return _squeezed(cx, x, axes_in(cx, axes, len(dims)))


@onnx_op("Squeeze", since=13)
def squeeze(cx: Cx, x: Value, axes: Value = None) -> Value:
    """Drops extents of 1: those of `axes`, or all there are."""
    if axes is None:
        return squeeze_attribute(cx, x)
    return squeeze_attribute(cx, x, axes=tuple(index_list(cx, axes, "axes")))


def _squeezed(cx: Cx, x: Value, axes: list[int] | tuple[int, ...]) -> Value:
    dims = cx.dims(x)
    wrong = [k for k in axes if isinstance(dims[k], int) and dims[k] != 1]
    if wrong:
        cx.bad(f"axis {wrong[0]} has extent {dims[wrong[0]]}, not 1")
    return cx.b.reshape(x, dims=[d for k, d in enumerate(dims) if k not in axes])


@onnx_op("Unsqueeze")
def unsqueeze_attribute(cx: Cx, x: Value, *, axes: tuple[int, ...]) -> Value:
    """Axes as an attribute, before opset 13."""
    return unsqueezed(cx, x, axes_in(cx, axes, cx.type(x).rank + len(axes)))


@onnx_op("Unsqueeze", since=13)
def unsqueeze(cx: Cx, x: Value, axes: Value) -> Value:
    """Puts in extents of 1 at these axes of the result."""
    return unsqueeze_attribute(cx, x, axes=tuple(index_list(cx, axes, "axes")))


@onnx_op("Identity")
def identity(cx: Cx, x: Value) -> Value:
    """The value itself."""
    return x


@onnx_op("Transpose")
def transpose(cx: Cx, x: Value, *, perm: tuple[int, ...] | None = None) -> Value:
    """Axes in another order, by default reversed."""
    rank = cx.type(x).rank
    order = tuple(range(rank))[::-1] if perm is None else axes_in(cx, perm, rank, "perm")
    return x if order == tuple(range(rank)) else cx.b.transpose(x, perm=order)


@onnx_op("DepthToSpace")
def depth_to_space(cx: Cx, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """Moves blocks of channels into squares of pixels."""
    if mode not in ("DCR", "CRD"):
        cx.bad(f"mode {mode!r} is neither DCR nor CRD")
    n, c, *space = cx.dims(x)
    blocks, k = [blocksize] * len(space), len(space)
    if blocksize < 1 or (isinstance(c, int) and c % blocksize**k):
        cx.bad(f"{c} channels in blocks of {blocksize}")
    depth = c // blocksize**k
    split = [n, *blocks, depth, *space] if mode == "DCR" else [n, depth, *blocks, *space]
    first, channel = (1, 1 + k) if mode == "DCR" else (2, 1)
    order = [0, channel]
    for axis in range(k):
        order += [2 + k + axis, first + axis]
    moved = cx.b.transpose(cx.b.reshape(x, dims=split), perm=order)
    return cx.b.reshape(moved, dims=[n, depth, *(d * blocksize for d in space)])


@onnx_op("SpaceToDepth")
def space_to_depth(cx: Cx, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """The inverse of `depth_to_space`."""
    n, c, *space = cx.dims(x)
    k = len(space)
    if blocksize < 1 or any(isinstance(d, int) and d % blocksize for d in space):
        cx.bad(f"extents {', '.join(map(str, space))} in blocks of {blocksize}")
    split = [n, c]
    for dim in space:
        split += [dim // blocksize, blocksize]
    blocks = [3 + 2 * axis for axis in range(k)]
    channel = [*blocks, 1] if mode == "DCR" else [1, *blocks]
    order = [0, *channel, *(2 + 2 * axis for axis in range(k))]
    moved = cx.b.transpose(cx.b.reshape(x, dims=split), perm=order)
    return cx.b.reshape(moved, dims=[n, c * blocksize**k, *(d // blocksize for d in space)])
