"""TfIdfVectorizer: how often sequences of numbers or words occur."""

from __future__ import annotations

import numpy as np

from cuvil.ir.dims import Dim, dim_max
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.onnx.strings import found_in, needs_strings

Ints = tuple[int, ...]
MODES = ("TF", "IDF", "TFIDF")


@onnx_op("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    cx: Cx,
    x: Value,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Ints,
    ngram_indexes: Ints,
    pool_int64s: Ints = (),
    pool_strings: tuple[str, ...] = (),
    weights: tuple[float, ...] = (),
) -> Value:
    """Per row of x the counts of n-grams, whose items may lie apart by equal skips."""
    if mode not in MODES or not 1 <= min_gram_length <= max_gram_length or max_skip_count < 0:
        cx.bad(f"mode={mode!r}, lengths {min_gram_length} to {max_gram_length}")
    rows = x if cx.type(x).rank == 2 else cx.b.reshape(x, dims=(1, *cx.dims(x)))
    if pool_strings:
        needs_strings(cx, rows)
        words = list(dict.fromkeys(pool_strings))
        rows = found_in(cx, rows, words)
        pool_int64s = tuple(map(words.index, pool_strings))
    rows = cx.b.cast(rows, to="i64")
    grams = _grams(cx, ngram_counts, pool_int64s)
    if len(ngram_indexes) != sum(len(g) for g in grams) or min(ngram_indexes, default=0) < 0:
        cx.bad(f"{len(ngram_indexes)} indexes for {sum(len(g) for g in grams)} n-grams")
    counts = [_zeros(cx, rows, 1)]
    for n, table in enumerate(grams, 1):
        wanted = len(table) and min_gram_length <= n <= max_gram_length
        skips = range(max_skip_count + 1 if n > 1 else 1)
        if len(table):
            total = _zeros(cx, rows, len(table))
            for skip in skips if wanted else ():
                total = cx.b.add(total, _occurrences(cx, rows, table, skip + 1))
            counts.append(total)
    places = np.zeros(max(ngram_indexes, default=-1) + 1, np.int64)
    places[list(ngram_indexes)] = np.arange(1, len(ngram_indexes) + 1)
    found = cx.b.gather(cx.b.concat(*counts, axis=1), cx.b.const(places), axis=1)
    if mode != "TF":
        found = _weighted(cx, found, mode, ngram_indexes, weights)
    return found if cx.type(x).rank == 2 else cx.b.reshape(found, dims=cx.dims(found)[1:])


def _grams(cx: Cx, starts: Ints, pool: Ints) -> list[np.ndarray]:
    """The n-grams of the pool as rows, for n = 1, 2, ..."""
    ends, found = [*starts[1:], len(pool)], []
    for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % n:
            cx.bad(f"ngram_counts {list(starts)} do not fit a pool of {len(pool)}")
        found.append(np.array(pool[start:end], np.int64).reshape(-1, n))
    return found


def _zeros(cx: Cx, rows: Value, count: int) -> Value:
    return cx.b.broadcast(cx.b.scalar(0, "f32"), dims=(cx.dims(rows)[0], count))


def _occurrences(cx: Cx, rows: Value, table: np.ndarray, step: int) -> Value:
    """[rows, grams]: at how many places a row holds a gram whose items are `step` apart."""
    b, (count, length) = cx.b, cx.dims(rows)
    room: Dim = dim_max(length - (table.shape[1] - 1) * step, 0)
    hit: Value = None
    for k in range(table.shape[1]):
        start = k * step if room != 0 else 0
        part = b.slice(rows, starts=(0, start), steps=(1, 1), dims=(count, room))
        part = b.reshape(part, dims=(count, 1, room))
        same = b.eq(part, b.const(table[:, k].reshape(-1, 1)))
        hit = same if hit is None else b.and_(hit, same)
    return b.reduce(b.cast(hit, to="f32"), kind="sum", axes=(2,), keepdims=False)


def _weighted(cx: Cx, found: Value, mode: str, indexes: Ints, weights: tuple[float, ...]) -> Value:
    b, table = cx.b, np.ones(max(indexes, default=-1) + 1, np.float32)
    if weights:
        table[list(indexes)] = weights
    if mode == "IDF":
        found = b.cast(b.gt(found, b.scalar(0, found)), to="f32")
    return b.mul(found, b.const(table))
