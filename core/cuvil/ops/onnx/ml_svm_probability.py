"""Probabilities of classes from those of their pairs, as libsvm couples them.

Method 2 of Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise
coupling" (2004): minimises sum over pairs of (r_ji p_i - r_ij p_j)^2 by coordinate steps, until no
optimality condition is off by more than 0.005 / classes, or 100 rounds have passed. Engines stop
early alike, so the limit is part of the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuvil.ir.dims import Dim
from cuvil.ir.types import TensorType
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.control import step_of
from cuvil.ops.onnx.ml import Floats

CERTAIN = 1e-7  # a probability of a pair keeps at least this distance from 0 and 1
LIMIT = 0.005
ROUNDS = 100


def probabilities(cx: Cx, scores: Value, a: Floats, b: Floats, classes: int) -> Value:
    """[N, classes] from the scores [N, pairs] of pairs (0, 1), (0, 2), ... by Platt's scaling."""
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    if len(a) != len(pairs) or len(b) != len(pairs):
        cx.bad(f"{len(a)} and {len(b)} factors of probabilities for {len(pairs)} pairs of classes")
    return _coupled(cx, _of_pairs(cx, scores, a, b), pairs, classes)


def _of_pairs(cx: Cx, scores: Value, a: Floats, b: Floats) -> Value:
    """[N, 2 * pairs]: that the first of each pair wins, and then that the second does."""
    build = cx.b
    factors, shifts = (build.const(np.array(v, np.float32)) for v in (a, b))
    first = build.sigmoid(build.neg(build.add(build.mul(scores, factors), shifts)))
    low, high = build.scalar(CERTAIN, first), build.scalar(1 - CERTAIN, first)
    first = build.min(build.max(first, low), high)
    return build.concat(first, build.sub(build.scalar(1, first), first), axis=1)


def _coupled(cx: Cx, wins: Value, pairs: Sequence[tuple[int, int]], classes: int) -> Value:
    b, count = cx.b, cx.dims(wins)[0]
    quadratic = _quadratic(cx, wins, pairs, classes)
    start = b.broadcast(b.scalar(1 / classes, wins), dims=(count, classes))
    counter = cx.new_bounded("round", ROUNDS - 1)

    def one_round(_: Value, p: Value) -> Sequence[Value]:
        slope, level = _slope(cx, quadratic, p)
        off = b.reduce(b.abs(b.sub(slope, level)), kind="max", axes=(1,), keepdims=True)
        moving = b.ge(off, b.scalar(LIMIT / classes, off))
        moved = _stepped(cx, quadratic, p, slope, level, classes)
        return b.reduce(moving, kind="any", axes=(0, 1), keepdims=False), b.select(moving, moved, p)

    goes_on = b.broadcast(b.scalar(True, "bool"), dims=())
    kinds = [TensorType.of((), "bool"), cx.type(start)]
    region, types = cx.region(kinds, one_round)
    cx.close(counter)
    return b.emit_regions(
        "loop", [goes_on, start], types, [region], trip=ROUNDS, symbol=str(counter), early=True
    )[1]


def _quadratic(cx: Cx, wins: Value, pairs: Sequence[tuple[int, int]], classes: int) -> Value:
    """[N, classes, classes]: Q of pQp; Q_tt = sum of r_jt^2, Q_tj = -r_jt r_tj."""
    b, count = cx.b, cx.dims(wins)[0]
    place = np.zeros((classes, classes), np.int64)  # of r_ij in a row of wins
    for k, (i, j) in enumerate(pairs):
        place[i, j], place[j, i] = k, len(pairs) + k
    own = np.eye(classes, dtype=bool)
    shape = (count, classes, classes)

    def at(places: np.ndarray) -> Value:
        return b.reshape(b.gather(wins, b.const(places.ravel()), axis=1), dims=shape)

    forth, back = at(place), at(place.T)
    squares = b.select(b.const(own), b.scalar(0, back), b.mul(back, back))
    diagonal = b.reduce(squares, kind="sum", axes=(2,), keepdims=True)
    return b.select(b.const(own), diagonal, b.neg(b.mul(back, forth)))


def _slope(cx: Cx, quadratic: Value, p: Value) -> tuple[Value, Value]:
    """(Qp [N, classes], pQp [N, 1])."""
    slope = cx.b.contract(quadratic, p, spec="ntj,nj->nt")
    return slope, cx.b.reduce(cx.b.mul(p, slope), kind="sum", axes=(1,), keepdims=True)


def _stepped(cx: Cx, quadratic: Value, p: Value, slope: Value, level: Value, classes: int) -> Value:
    """p after one step along every coordinate in turn, each followed by scaling to a sum of 1."""
    b = cx.b
    counter = cx.new_bounded("class", classes - 1)

    def along(p: Value, slope: Value, level: Value) -> Sequence[Value]:
        row = step_of(cx, quadratic, 1, counter)
        own, here = _column(cx, row, counter), _column(cx, slope, counter)
        move = b.div(b.sub(level, here), own)
        total = b.add(b.scalar(1, move), move)
        whole = b.add(level, b.mul(move, b.add(b.mul(move, own), b.mul(b.scalar(2, here), here))))
        chosen = b.eq(b.iota(dims=(1, classes), axis=1),
                      b.dims(dims=(counter,), shape=(1, 1), dtype="i64"))  # fmt: skip
        p = b.div(b.select(chosen, b.add(p, move), p), total)
        slope = b.div(b.add(slope, b.mul(move, row)), total)
        return p, slope, b.div(whole, b.mul(total, total))

    region, types = cx.region([cx.type(v) for v in (p, slope, level)], along)
    cx.close(counter)
    return cx.b.emit_regions(
        "loop", [p, slope, level], types, [region], trip=classes, symbol=str(counter)
    )[0]


def _column(cx: Cx, x: Value, at: Dim) -> Value:
    """[N, 1]: a column of [N, classes]."""
    return cx.b.slice(x, starts=(0, at), steps=(1, 1), dims=(cx.dims(x)[0], 1))
