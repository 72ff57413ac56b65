"""Random tensors: a hash of the seed and the element's position, the same in every run.

A node without a seed has one of its own, so that two nodes of a model give different numbers.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

from cuvil.ir.dims import Dim, product
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]
GOLDEN = 0x9E3779B9  # 2**32 over the golden ratio: neighbouring positions land far apart
BITS = 24  # of a uniform number in f32; f64 has two hashes' worth


def seed_of(cx: Cx, seed: float | None) -> int:
    """A number for a seed, or for the node where it has none."""
    text = str(cx.new_symbol("random")) if seed is None else repr(float(seed))
    return zlib.crc32(text.encode())


def _hash(cx: Cx, position: Value, seed: int) -> Value:
    """32 random bits for every position, a u32 tensor."""
    b = cx.b

    def number(value: int) -> Value:
        return b.scalar(value, "u32")

    def folded(x: Value, bits: int) -> Value:
        return b.xor(x, b.shift_right(x, number(bits)))

    x = b.xor(b.mul(position, number(GOLDEN)), number(seed))
    for bits, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = b.mul(folded(x, bits), number(factor))
    return folded(x, 16)


def uniform(cx: Cx, dims: Sequence[Dim], seed: int, kind: str = "f32") -> Value:
    """Numbers in [0, 1) of type f32 or f64."""
    b = cx.b
    position = b.cast(b.iota(dims=(product(dims),), axis=0), to="u32")
    top = b.cast(b.shift_right(_hash(cx, position, seed), b.scalar(32 - BITS, "u32")), to=kind)
    value = b.mul(top, b.scalar(2.0**-BITS, kind))
    if kind == "f64":
        low = b.cast(_hash(cx, position, seed ^ GOLDEN), to=kind)
        value = b.add(value, b.mul(low, b.scalar(2.0 ** -(BITS + 32), kind)))
    return b.reshape(value, dims=dims)


def _scaled(cx: Cx, x: Value, factor: float, shift: float, to: str) -> Value:
    value = cx.b.add(cx.b.mul(x, cx.b.scalar(factor, x)), cx.b.scalar(shift, x))
    return value if cx.type(value).dtype.name == to else cx.b.cast(value, to=to)


def wide_name(to: str) -> str:
    """The type in which numbers for this type are drawn."""
    return "f64" if to == "f64" else "f32"


def _normal(cx: Cx, dims: Sequence[Dim], seed: int, kind: str) -> Value:
    """By Box and Muller, from two uniform numbers of which the first is not 0."""
    b = cx.b
    first = b.sub(b.scalar(1, kind), uniform(cx, dims, seed, kind))
    turn = b.mul(uniform(cx, dims, seed + 1, kind), b.scalar(2 * math.pi, kind))
    radius = b.sqrt(b.mul(b.log(first), b.scalar(-2, kind)))
    return b.mul(radius, b.cos(turn))


@onnx_op("RandomUniform")
def random_uniform(
    cx: Cx,
    *,
    shape: Ints,
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Value:
    """Uniform numbers from low to high."""
    to = cx.dtype(dtype)
    return _scaled(cx, uniform(cx, shape, seed_of(cx, seed), wide_name(to)), high - low, low, to)


@onnx_op("RandomUniformLike")
def random_uniform_like(
    cx: Cx,
    x: Value,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Value:
    """As many as x has elements, in its type unless `dtype` says another."""
    to = cx.type(x).dtype.name if dtype is None else cx.dtype(dtype)
    value = uniform(cx, cx.dims(x), seed_of(cx, seed), wide_name(to))
    return _scaled(cx, value, high - low, low, to)


@onnx_op("RandomNormal")
def random_normal(
    cx: Cx,
    *,
    shape: Ints,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Normally distributed numbers."""
    to = cx.dtype(dtype)
    return _scaled(cx, _normal(cx, shape, seed_of(cx, seed), wide_name(to)), scale, mean, to)


@onnx_op("RandomNormalLike")
def random_normal_like(
    cx: Cx,
    x: Value,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """As many as x has elements, in its type unless `dtype` says another."""
    to = cx.type(x).dtype.name if dtype is None else cx.dtype(dtype)
    return _scaled(cx, _normal(cx, cx.dims(x), seed_of(cx, seed), wide_name(to)), scale, mean, to)


@onnx_op("Bernoulli", since=15)
def bernoulli(cx: Cx, x: Value, *, dtype: int | None = None, seed: float | None = None) -> Value:
    """1 with the probability that the element is, else 0."""
    kind = cx.type(x).dtype
    to = kind.name if dtype is None else cx.dtype(dtype)
    drawn = uniform(cx, cx.dims(x), seed_of(cx, seed), wide_name(kind.name))
    chance = cx.b.cast(x, to=wide_name(kind.name))
    return cx.b.cast(cx.b.lt(drawn, chance), to=to)


@onnx_op("Multinomial", since=7)
def multinomial(
    cx: Cx, x: Value, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Value:
    """Classes drawn by their logarithmic probabilities [N, classes]: [N, sample_size]."""
    b, (rows, classes) = cx.b, cx.dims(x)
    shares = b.softmax(b.cast(x, to="f32"), axis=1)
    below = b.cumulative(shares, kind="sum", axis=1)
    drawn = uniform(cx, (rows, sample_size, 1), seed_of(cx, seed))
    passed = b.le(b.reshape(below, dims=(rows, 1, classes)), drawn)
    count = b.reduce(b.cast(passed, to="i64"), kind="sum", axes=(2,), keepdims=False)
    last = b.dims(dims=(classes - 1,), shape=(), dtype="i64")
    return b.cast(b.min(count, last), to=cx.dtype(dtype))
