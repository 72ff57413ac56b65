"""A small decoder with a cache of keys and values: row B61 of the fault list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuvil.errors import Error
from tests.faults.cases import Array, Model, check, outputs_of

HEADS, SIZE, WORDS, LAYERS = 2, 4, 11, 2
WIDTH = HEADS * SIZE
RNG = np.random.default_rng(61)


def normal(*shape: int) -> Array:
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


class Decoder:
    """Token ids, positions, a mask to add and past keys and values, in; logits and present ones.

    Extents of batch, new tokens and past are open. Keys carry their place as a rotation.
    """

    def __init__(self) -> None:
        m = self.m = Model(17)
        self.ids = m.feed(np.zeros((1, 1), np.int64), ["B", "S"])
        self.place = m.feed(np.zeros((1, 1), np.float32), ["B", "S"])
        self.mask = m.feed(np.zeros((1, 1, 1, 1), np.float32), ["B", 1, "S", "T"])
        self.past = [m.feed(np.zeros((1, HEADS, 0, SIZE), np.float32), ["B", HEADS, "P", SIZE])
                     for _ in range(2 * LAYERS)]  # fmt: skip
        x, present = m.op("Gather", m.const(normal(WORDS, WIDTH)), self.ids), []
        for k, v in zip(self.past[::2], self.past[1::2], strict=True):
            x, *made = self.layer(x, k, v)
            present += made
        m.keep(m.op("MatMul", x, m.const(normal(WIDTH, WORDS))), *present)
        self.engine = m.engine()

    def heads(self, x: str, turn: bool) -> str:
        m = self.m
        y = m.op("Reshape", m.op("MatMul", x, m.const(normal(WIDTH, WIDTH))),
                 m.const([0, 0, HEADS, SIZE], np.int64))  # fmt: skip
        y = m.op("Transpose", y, perm=[0, 2, 1, 3])
        if not turn:
            return str(y)
        angle = m.op("Unsqueeze", self.place, m.const([1, 3], np.int64))
        cos, sin = m.op("Cos", angle), m.op("Sin", angle)
        low, high = m.op("Split", y, outputs=2, axis=-1)
        left = m.op("Sub", m.op("Mul", low, cos), m.op("Mul", high, sin))
        right = m.op("Add", m.op("Mul", high, cos), m.op("Mul", low, sin))
        return str(m.op("Concat", left, right, axis=-1))

    def layer(self, x: str, past_k: str, past_v: str) -> list[str]:
        m = self.m
        q, k, v = self.heads(x, True), self.heads(x, True), self.heads(x, False)
        k, v = m.op("Concat", past_k, k, axis=2), m.op("Concat", past_v, v, axis=2)
        scores = m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2]))
        soft = m.op(
            "Softmax", m.op("Add", m.op("Mul", scores, m.const(np.float32(0.5))), self.mask)
        )
        mixed = m.op("Transpose", m.op("MatMul", soft, v), perm=[0, 2, 1, 3])
        return [m.op("Add", x, m.op("Reshape", mixed, m.const([0, 0, WIDTH], np.int64))), k, v]

    def __call__(self, ids: Array, place: Array, mask: Array, past: list[Array]) -> list[Array]:
        feeds: dict[str, Any] = {self.ids: ids, self.place: place.astype("f4"), self.mask: mask}
        return outputs_of(self.m, self.engine, {**feeds, **dict(zip(self.past, past, strict=True))})


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder()


def nothing(batch: int) -> list[Array]:
    return [np.zeros((batch, HEADS, 0, SIZE), np.float32)] * (2 * LAYERS)


def causal(new: int, total: int) -> Array:
    """What a token must not see: those after it."""
    rows = np.arange(total - new, total)[:, None]
    return np.where(np.arange(total) > rows, -np.inf, 0).astype(np.float32)[None, None]


def test_b61_steps_are_the_whole(decoder: Decoder) -> None:
    """A prefill of 5 (from a past of length 0), then 3 steps, against all 8 tokens at once."""
    ids = RNG.integers(0, WORDS, (1, 8))
    places = np.arange(8)[None]
    whole, *_ = decoder(ids, places, causal(8, 8), nothing(1))
    first, *past = decoder(ids[:, :5], places[:, :5], causal(5, 5), nothing(1))
    check(first, whole[:, :5], 1e-4, 1e-5)
    for t in range(5, 8):
        step, *past = decoder(ids[:, t : t + 1], places[:, t : t + 1], causal(1, t + 1), past)
        check(step[:, 0], whole[:, t], 1e-4, 1e-5)
        assert step.argmax() == whole[0, t].argmax()
        assert past[0].shape == (1, HEADS, t + 1, SIZE)


def test_b61_padding_to_the_left(decoder: Decoder) -> None:
    """Prompts of 3 and 5 tokens in one batch, and each alone; then a step for both."""
    short, long = RNG.integers(0, WORDS, 3), RNG.integers(0, WORDS, 5)
    ids = np.stack([np.r_[0, 0, short], long])
    places = np.stack([np.r_[0, 0, 0, 1, 2], np.arange(5)])
    mask = np.repeat(causal(5, 5), 2, 0)
    mask[0, :, :, :2] = np.finfo(np.float32).min
    both, *past = decoder(ids, places, mask, nothing(2))
    alone, *past_short = decoder(short[None], np.arange(3)[None], causal(3, 3), nothing(1))
    other, *past_long = decoder(long[None], np.arange(5)[None], causal(5, 5), nothing(1))
    check(both[0, 2:], alone[0], 1e-4, 1e-5)
    check(both[1], other[0], 1e-4, 1e-5)
    mask = np.zeros((2, 1, 1, 6), np.float32)
    mask[0, :, :, :2] = np.finfo(np.float32).min
    both, *_ = decoder(np.array([[4], [4]]), np.array([[3], [5]]), mask, past)
    alone, *_ = decoder(np.array([[4]]), np.array([[3]]), causal(1, 4), past_short)
    other, *_ = decoder(np.array([[4]]), np.array([[5]]), causal(1, 6), past_long)
    check(both[:, 0], np.stack([alone[0, 0], other[0, 0]]), 1e-4, 1e-5)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_b61_a_cache_that_is_full(mode: str) -> None:
    """One token more than fit: an error, or, if asked for, around to the oldest."""
    m = Model(24)
    cache = m.feed(np.zeros((1, 4, 2), np.float32))
    at = m.feed(np.array([0], np.int64))
    new = m.feed(np.full((1, 1, 2), 9, np.float32))
    m.keep(m.op("TensorScatter", cache, new, at, axis=1, mode=mode))
    engine = m.engine()
    for t in range(4):
        (got,) = outputs_of(m, engine, {at: np.array([t])})
        assert got[0, :, 0].tolist() == [9.0 * (k == t) for k in range(4)]
    if mode == "circular":
        check(outputs_of(m, engine, {at: np.array([5])})[0][0, :, 0], [0, 9, 0, 0])
        return
    for t in (4, -1, 1 << 40):
        with pytest.raises(Error):
            outputs_of(m, engine, {at: np.array([t])})
