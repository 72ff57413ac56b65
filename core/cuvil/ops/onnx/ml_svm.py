"""Support vector machines: kernels between samples and vectors, and decisions between classes."""

from __future__ import annotations

import numpy as np

from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.ml import (
    ML,
    Floats,
    Ints,
    Strings,
    best_of,
    label_of,
    rows_of,
    transformed,
)
from cuvil.ops.onnx.ml_svm_probability import probabilities
from cuvil.ops.onnx.registry import onnx_op


def _kernel(cx: Cx, x: Value, vectors: np.ndarray, kind: str, params: Floats) -> Value:
    """[N, vectors]: the kernel of every sample with every vector."""
    b, (gamma, coef0, degree) = cx.b, params or (0.0, 0.0, 0.0)
    if kind not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        cx.bad(f"kernel_type {kind!r}")

    def number(value: float) -> Value:
        return b.scalar(value, "f32")

    if kind == "RBF":
        far = b.sub(b.reshape(x, dims=(cx.dims(x)[0], 1, cx.dims(x)[1])), b.const(vectors))
        square = b.reduce(b.mul(far, far), kind="sum", axes=(2,), keepdims=False)
        return b.exp(b.mul(square, number(-gamma)))
    product = b.contract(x, b.const(vectors), spec="mk,nk->mn")
    if kind == "LINEAR":
        return product
    value = b.add(b.mul(product, number(gamma)), number(coef0))
    return b.tanh(value) if kind == "SIGMOID" else b.pow(value, number(degree))


def _matrix(cx: Cx, numbers: Floats, rows: int) -> np.ndarray:
    if rows < 1 or len(numbers) % rows:
        cx.bad(f"{len(numbers)} numbers in {rows} rows")
    return np.array(numbers, np.float32).reshape(rows, -1)


@onnx_op("SVMRegressor", domain=ML)
def svm_regressor(
    cx: Cx,
    x: Value,
    *,
    coefficients: Floats,
    kernel_params: Floats = (),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Floats = (),
    support_vectors: Floats = (),
) -> Value:
    """Kernels with the support vectors (without those: the sample) by their coefficients."""
    data = cx.b.cast(rows_of(cx, x), to="f32")
    if n_supports:
        vectors = _matrix(cx, support_vectors, n_supports)
        values = _kernel(cx, data, vectors, kernel_type, kernel_params)
    else:
        values = data
    weights = cx.b.const(np.array(coefficients, np.float32).reshape(-1, 1))
    score = cx.b.contract(values, weights, spec="mk,kn->mn")
    score = cx.b.add(score, cx.b.scalar(rho[0] if rho else 0.0, score))
    if one_class:
        one = cx.b.scalar(1, score)
        return cx.b.select(cx.b.gt(score, cx.b.scalar(0, score)), one, cx.b.neg(one))
    return transformed(cx, score, post_transform)


@onnx_op("SVMClassifier", domain=ML)
def svm_classifier(
    cx: Cx,
    x: Value,
    *,
    classlabels_ints: Ints = (),
    classlabels_strings: Strings = (),
    coefficients: Floats,
    kernel_params: Floats = (),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Floats = (),
    prob_b: Floats = (),
    rho: Floats,
    support_vectors: Floats = (),
    vectors_per_class: Ints = (),
) -> tuple[Value, ...]:
    """(label, scores): by votes of all pairs of classes, or one row of coefficients per class.

    With prob_a and prob_b the scores are probabilities; votes decide all the same.
    """
    labels = classlabels_strings or classlabels_ints
    data, classes = cx.b.cast(rows_of(cx, x), to="f32"), len(labels)
    if not vectors_per_class:
        matrix = cx.b.const(_matrix(cx, coefficients, classes))
        scores = cx.b.contract(data, matrix, spec="mk,nk->mn")
        scores = cx.b.add(scores, cx.b.scalar(rho[0], scores))
        label = label_of(cx, best_of(cx, scores), labels)
        return label, transformed(cx, scores, post_transform)
    vectors = _matrix(cx, support_vectors, sum(vectors_per_class))
    values = _kernel(cx, data, vectors, kernel_type, kernel_params)
    pairs, ballots = _pairs(cx, coefficients, vectors_per_class, classes)
    scores = cx.b.contract(values, cx.b.const(pairs), spec="mk,nk->mn")
    scores = cx.b.add(scores, cx.b.const(np.array(rho, np.float32)))
    wins = cx.b.cast(cx.b.gt(scores, cx.b.scalar(0, scores)), to="f32")
    both = cx.b.concat(wins, cx.b.sub(cx.b.scalar(1, wins), wins), axis=1)
    votes = cx.b.contract(both, cx.b.const(ballots), spec="mk,nk->mn")
    label = label_of(cx, best_of(cx, votes), labels)
    if prob_a:
        scores = probabilities(cx, scores, prob_a, prob_b, classes)
    elif classes == 2:
        scores = cx.b.concat(cx.b.neg(scores), scores, axis=1)
    return label, transformed(cx, scores, post_transform)


def _pairs(
    cx: Cx, coefficients: Floats, counts: Ints, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of every pair of classes by vector, and whom a win and a loss count for."""
    if classes != len(counts) or classes < 2:
        cx.bad(f"{classes} labels, vectors of {len(counts)} classes")
    table = _matrix(cx, coefficients, classes - 1)
    first = np.concatenate([[0], np.cumsum(counts)])
    rows = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    pairs = np.zeros((len(rows), first[-1]), np.float32)
    ballots = np.zeros((classes, 2 * len(rows)), np.float32)
    for k, (i, j) in enumerate(rows):
        for mine, other in ((i, j - 1), (j, i)):
            part = slice(first[mine], first[mine + 1])
            pairs[k, part] = table[other, part]
        ballots[i, k] = ballots[j, len(rows) + k] = 1
    return pairs, ballots
