"""ai.onnx.ml: features, linear models and what their scores become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.build import constant_array
from cuvil.ir.names import Operation
from cuvil.ir.string_tables import read_strings
from cuvil.ops.compose.helpers import unsqueezed
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.onnx.strings import found_in, needs_strings, texts

ML = "ai.onnx.ml"
Ints = tuple[int, ...]
Floats = tuple[float, ...]
Strings = tuple[str, ...]
LEAST_SHARE = 1e-7  # scores nearer to 0 count as absent: SOFTMAX_ZERO
PROBIT = 0.147  # of Winitzki's approximation of the inverse of erf


def array_of(cx: Cx, attribute: Any) -> np.ndarray:
    """The numbers, or the str objects, that a tensor attribute holds."""
    value = cx.tensor(attribute)
    owner = value.owner
    assert isinstance(owner, Operation)
    if owner.name != "cuvil.strings":
        return constant_array(owner, cx.b.pool)
    table = owner.operands[0].owner
    assert isinstance(table, Operation)
    items = read_strings(constant_array(table, cx.b.pool))
    return texts(items).reshape([d for d in cx.dims(value) if isinstance(d, int)])


def rows_of(cx: Cx, x: Value) -> Value:
    """x as a matrix of samples: a vector is one of them."""
    return cx.b.reshape(x, dims=(1, *cx.dims(x))) if cx.type(x).rank == 1 else x


@onnx_op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(cx: Cx, x: Value, indices: Value) -> Value:
    """Columns of the last axis."""
    flat = cx.b.reshape(indices, dims=(cx.type(indices).size,))
    return cx.b.gather(rows_of(cx, x), flat, axis=max(cx.type(x).rank, 2) - 1)


@onnx_op("Binarizer", domain=ML)
def binarizer(cx: Cx, x: Value, *, threshold: float = 0.0) -> Value:
    """1 above the threshold, else 0."""
    limit = cx.b.cast(cx.b.scalar(threshold, "f32"), to=cx.type(x).dtype.name)
    return cx.b.cast(cx.b.gt(x, limit), to=cx.type(x).dtype.name)


@onnx_op("Scaler", domain=ML)
def scaler(cx: Cx, x: Value, *, offset: Floats = (), scale: Floats = ()) -> Value:
    """(x - offset) * scale, by column or all alike, as f32."""
    value = cx.b.cast(x, to="f32")
    value = cx.b.sub(value, _vector(cx, offset or (0.0,)))
    return cx.b.mul(value, _vector(cx, scale or (1.0,)))


def _vector(cx: Cx, numbers: Sequence[float], kind: str = "f32") -> Value:
    """Numbers to broadcast along the last axis; a single one as a scalar."""
    return cx.b.scalar(numbers[0], kind) if len(numbers) == 1 else cx.b.const(numbers, kind)


@onnx_op("Normalizer", domain=ML)
def normalizer(cx: Cx, x: Value, *, norm: str = "MAX") -> Value:
    """Every row over its greatest element, its sum of sizes, or its length; 0 leaves it."""
    value = cx.b.cast(x, to="f32")
    axes = (cx.type(x).rank - 1,)
    if norm not in ("MAX", "L1", "L2"):
        cx.bad(f"norm {norm!r}")
    sizes = {"MAX": value, "L1": cx.b.abs(value), "L2": cx.b.mul(value, value)}[norm]
    total = cx.b.reduce(sizes, kind="max" if norm == "MAX" else "sum", axes=axes, keepdims=True)
    total = cx.b.sqrt(total) if norm == "L2" else total
    none = cx.b.eq(total, cx.b.scalar(0, total))
    return cx.b.div(value, cx.b.select(none, cx.b.scalar(1, total), total))


@onnx_op("Imputer", domain=ML)
def imputer(
    cx: Cx,
    x: Value,
    *,
    imputed_value_floats: Floats = (),
    imputed_value_int64s: Ints = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Value:
    """Another value, by column or for all, in place of one (NaN is found, too)."""
    kind = cx.type(x).dtype
    values = imputed_value_floats if kind.is_float else imputed_value_int64s
    if not values:
        cx.bad(f"no values to put into {kind.name}")
    replaced = replaced_value_float if kind.is_float else replaced_value_int64
    bad = cx.b.isnan(x) if replaced != replaced else cx.b.eq(x, cx.b.scalar(replaced, x))
    return cx.b.select(bad, _vector(cx, values, kind.name), x)


@onnx_op("FeatureVectorizer", domain=ML)
def feature_vectorizer(cx: Cx, x: Value, *rest: Value, inputdimensions: Ints = ()) -> Value:
    """Matrices side by side, as f32."""
    parts = [cx.b.cast(rows_of(cx, v), to="f32") for v in (x, *rest)]
    return cx.b.concat(*parts, axis=1) if len(parts) > 1 else parts[0]


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(
    cx: Cx, x: Value, *, cats_int64s: Ints = (), cats_strings: Strings = (), zeros: int = 1
) -> Value:
    """One more axis: 1 at the category that the element is; none is all zeros."""
    rank = cx.type(x).rank
    if cats_strings:
        needs_strings(cx, x)
        place = found_in(cx, x, cats_strings)
        numbers = np.arange(len(cats_strings))
        return _one_hot(cx, unsqueezed(cx, place, [rank]), numbers)
    place = unsqueezed(cx, cx.b.cast(x, to="i64"), [cx.type(x).rank])
    return _one_hot(cx, place, np.array(cats_int64s, np.int64))


def _one_hot(cx: Cx, place: Value, numbers: np.ndarray) -> Value:
    return cx.b.cast(cx.b.eq(place, cx.b.const(numbers)), to="f32")


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(
    cx: Cx,
    x: Value,
    *,
    cats_int64s: Ints = (),
    cats_strings: Strings = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value:
    """Strings to the numbers at the same places, or the other way round."""
    if len(cats_int64s) != len(cats_strings):
        cx.bad(f"{len(cats_int64s)} numbers for {len(cats_strings)} strings")
    numbers = np.array(cats_int64s, np.int64)
    if cx.type(x).dtype.is_string:
        return _looked_up(cx, x, texts(cats_strings), numbers, default_int64)
    return _looked_up(cx, x, numbers, texts(cats_strings), default_string)


def _looked_up(cx: Cx, x: Value, keys: np.ndarray, values: np.ndarray, default: Any) -> Value:
    """The value of the key that an element equals, or the default."""
    if keys.dtype == object:
        needs_strings(cx, x)
        place = found_in(cx, x, list(keys))
    else:
        place = _place_in(cx, x, keys)
    table = np.append(values, np.array([default], values.dtype))
    return cx.b.gather(cx.b.const(table), place, axis=0)


@onnx_op("LabelEncoder", domain=ML)
def label_encoder_of_classes(
    cx: Cx,
    x: Value,
    *,
    classes_strings: Strings = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value:
    """The first version: strings to their positions, or the other way round."""
    places = np.arange(len(classes_strings))
    if cx.type(x).dtype.is_string:
        return _looked_up(cx, x, texts(classes_strings), places, default_int64)
    return _looked_up(cx, x, places, texts(classes_strings), default_string)


@onnx_op("LabelEncoder", since=2, domain=ML)
def label_encoder(
    cx: Cx,
    x: Value,
    *,
    keys_int64s: Ints = (),
    keys_floats: Floats = (),
    keys_strings: Strings = (),
    keys_tensor: Any = None,
    values_int64s: Ints = (),
    values_floats: Floats = (),
    values_strings: Strings = (),
    values_tensor: Any = None,
    default_int64: int = -1,
    default_float: float = -0.0,
    default_string: str = "_Unused",
    default_tensor: Any = None,
) -> Value:
    """The value of the key that an element equals (NaN equals NaN), or the default."""
    keys = _items(cx, keys_int64s, keys_floats, keys_strings, keys_tensor)
    values = _items(cx, values_int64s, values_floats, values_strings, values_tensor)
    if keys.shape != values.shape or keys.ndim != 1 or not keys.size:
        cx.bad(f"{keys.size} keys and {values.size} values")
    plain = {"f": default_float, "O": default_string}.get(values.dtype.kind, default_int64)
    default = plain if default_tensor is None else array_of(cx, default_tensor).reshape(-1)[0]
    return _looked_up(cx, x, keys, values, default)


def _items(cx: Cx, ints: Ints, floats: Floats, strings: Strings, tensor: Any) -> np.ndarray:
    if tensor is not None:
        return array_of(cx, tensor)
    if strings:
        return texts(strings)
    return np.array(floats, np.float32) if floats else np.array(ints, np.int64)


def _place_in(cx: Cx, x: Value, keys: np.ndarray) -> Value:
    """The position of the last key that an element equals, or their number."""
    b, rank = cx.b, cx.type(x).rank
    keys = keys.astype(cx.type(x).dtype.numpy)
    element = unsqueezed(cx, x, [rank])
    same = b.eq(element, b.const(keys))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        same = b.or_(same, b.and_(b.isnan(element), b.const(np.isnan(keys))))
    place = b.const(np.arange(keys.size))
    found = b.reduce(b.select(same, place, b.scalar(-1, "i64")), kind="max", axes=(rank,),
                     keepdims=False)  # fmt: skip
    return b.select(b.lt(found, b.scalar(0, "i64")), b.scalar(keys.size, "i64"), found)


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(
    cx: Cx,
    x: Value,
    *,
    coefficients: Floats = (),
    intercepts: Floats = (),
    targets: int = 1,
    post_transform: str = "NONE",
) -> Value:
    """x times coefficients plus intercepts, for every target."""
    return transformed(cx, _linear(cx, x, coefficients, intercepts, targets), post_transform)


def _linear(
    cx: Cx, x: Value, coefficients: Floats, intercepts: Floats, count: int, kind: str = "f32"
) -> Value:
    if count < 1 or len(coefficients) % count or len(intercepts) not in (0, count):
        cx.bad(f"{len(coefficients)} coefficients and {len(intercepts)} intercepts for {count}")
    matrix = np.array(coefficients).reshape(count, -1)
    scores = cx.b.contract(
        cx.b.cast(rows_of(cx, x), to=kind), cx.b.const(matrix, kind), spec="mk,nk->mn"
    )
    return cx.b.add(scores, cx.b.const(intercepts, kind)) if intercepts else scores


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(
    cx: Cx,
    x: Value,
    *,
    coefficients: Floats,
    intercepts: Floats = (),
    classlabels_ints: Ints = (),
    classlabels_strings: Strings = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Value, ...]:
    """(label, scores): one row of coefficients decides between two classes by its sign."""
    classes = classlabels_strings or classlabels_ints
    features = cx.dims(x)[-1]
    if not isinstance(features, int) or not features or len(coefficients) % features:
        cx.fail(f"{len(coefficients)} coefficients for {features} features")
    count = len(coefficients) // features
    scores = _linear(cx, x, coefficients, intercepts, count)
    if count == 1 and len(classes) in (0, 2):
        positive = cx.b.gt(cx.b.reshape(scores, dims=cx.dims(scores)[:1]), cx.b.scalar(0, scores))
        return label_of(cx, cx.b.cast(positive, to="i64"), classes or (0, 1)), (
            two_scores(cx, scores, post_transform, probability=post_transform != "LOGISTIC")
        )
    labels = label_of(cx, best_of(cx, scores), classes or tuple(range(count)))
    return labels, transformed(cx, scores, post_transform)


def best_of(cx: Cx, scores: Value) -> Value:
    """The position of the greatest score of every row."""
    return cx.b.arg_reduce(scores, kind="max", axis=1, keepdims=False, last=False)


def label_of(cx: Cx, place: Value, labels: Ints | Strings) -> Value:
    """The labels, numbers or strings, at these positions."""
    of_strings = isinstance(labels[0], str) if labels else False
    return cx.b.gather(cx.b.const(np.array(labels, object if of_strings else np.int64)), place,
                       axis=0)  # fmt: skip


def two_scores(cx: Cx, score: Value, post_transform: str, probability: bool = False) -> Value:
    """[N, 1] scores of the second class as [N, 2]: 1 - s beside s, or -s beside s transformed."""
    b = cx.b
    if post_transform == "PROBIT":
        score, probability = probit(cx, score), False
    if probability:
        return b.concat(b.sub(b.scalar(1, score), score), score, axis=1)
    pair = b.concat(b.neg(score), score, axis=1)
    return b.sigmoid(pair) if post_transform == "LOGISTIC" else pair


def transformed(cx: Cx, scores: Value, how: str) -> Value:
    """The rows of scores after a post transform."""
    b = cx.b
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return b.sigmoid(scores)
    if how == "PROBIT":
        return probit(cx, scores)
    if how == "SOFTMAX":
        return b.softmax(scores, axis=1)
    if how != "SOFTMAX_ZERO":
        cx.bad(f"post_transform {how!r}")
    best = b.reduce(scores, kind="max", axes=(1,), keepdims=True)
    share = b.exp(b.sub(scores, best))
    there = b.gt(b.abs(scores), b.scalar(LEAST_SHARE, scores))
    total = b.reduce(b.select(there, share, b.scalar(0, share)), kind="sum", axes=(1,),
                     keepdims=True)  # fmt: skip
    kept = b.select(there, share, b.mul(scores, b.exp(b.neg(best))))
    return b.div(kept, total)


def probit(cx: Cx, x: Value) -> Value:
    """The quantile of the normal distribution, by Winitzki's approximation of inverse erf."""
    b = cx.b

    def number(value: float) -> Value:
        return b.scalar(value, x)

    y = b.sub(b.mul(x, number(2)), number(1))
    log = b.log(b.mul(b.sub(number(1), y), b.add(number(1), y)))
    v = b.add(number(2 / (np.pi * PROBIT)), b.mul(log, number(0.5)))
    root = b.sqrt(b.sub(b.mul(v, v), b.mul(log, number(1 / PROBIT))))
    size = b.mul(b.sqrt(b.sub(root, v)), number(float(np.sqrt(2))))
    return b.select(b.lt(y, number(0)), b.neg(size), size)
