"""Ensembles of decision trees: all trees walk one level at a time, by gathering from tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.ml import (
    ML,
    Floats,
    Ints,
    Strings,
    array_of,
    best_of,
    label_of,
    rows_of,
    transformed,
    two_scores,
)
from cuvil.ops.onnx.registry import onnx_op

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = "BRANCH_MEMBER"
LEAF = "LEAF"
COMPARE = dict(zip(MODES, ("le", "lt", "ge", "gt", "eq", "ne"), strict=True))
POST = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
UNROLLED = 12  # levels walked without a loop


@dataclass
class Forest:
    """Nodes of all trees in one numbering; a leaf's branches both lead to itself.

    weights: per node what a leaf gives each target; given: whether it does.
    """

    roots: np.ndarray
    feature: np.ndarray
    mode: np.ndarray
    value: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray
    weights: np.ndarray
    given: np.ndarray

    def depth(self, cx: Cx) -> int:
        """The most steps from a root to a leaf; ModelError where trees are none."""
        inner = self.mode != LEAF
        at, steps = np.unique(self.roots), 0
        while inner[at].any():
            at = np.unique(np.concatenate([self.yes[at], self.no[at]]))
            steps += 1
            if steps > len(inner):
                cx.bad("the nodes of a tree form a cycle")
        return steps


def scores_of(cx: Cx, x: Value, forest: Forest, aggregate: str) -> Value:
    """[N, targets]: what the trees' leaves give together."""
    if aggregate not in AGGREGATES:
        cx.bad(f"aggregate_function {aggregate!r}")
    _check(cx, x, forest)
    leaf = _walked(cx, rows_of(cx, x), forest)
    kind = {"AVERAGE": "sum"}.get(aggregate, aggregate.lower())
    weights = forest.weights
    if kind in ("min", "max"):
        worst = np.inf if kind == "min" else -np.inf
        weights = np.where(forest.given, weights, np.asarray(worst, weights.dtype))
    votes = cx.b.gather(cx.b.const(weights), leaf, axis=0)
    total = cx.b.reduce(votes, kind=kind, axes=(1,), keepdims=False)
    if aggregate == "AVERAGE":
        total = cx.b.div(total, cx.b.scalar(len(forest.roots), total))
    if kind in ("min", "max"):
        none = cx.b.eq(total, cx.b.scalar(worst, total))
        total = cx.b.select(none, cx.b.scalar(0, total), total)
    return total


def _check(cx: Cx, x: Value, forest: Forest) -> None:
    count, features = len(forest.mode), cx.dims(x)[-1]
    if not forest.roots.size:
        cx.bad("there is no root")
    for name, places, limit in (
        ("a root", forest.roots, count),
        ("a branch", np.concatenate([forest.yes, forest.no]), count),
        ("a feature", forest.feature, features),
    ):
        low, high = (int(places.min()), int(places.max())) if places.size else (0, -1)
        if isinstance(limit, int) and (low < 0 or high >= limit):
            cx.bad(f"{name} is outside of 0 to {limit - 1}")


def _walked(cx: Cx, x: Value, forest: Forest) -> Value:
    """[N, trees]: the leaf that every sample reaches in every tree."""
    kind = "f64" if cx.type(x).dtype.name == "f64" else "f32"
    data = cx.b.cast(x, to=kind)
    start = cx.b.broadcast(
        cx.b.const(forest.roots.astype(np.int64)), dims=(cx.dims(x)[0], len(forest.roots))
    )
    step = _step(cx, data, forest, kind)
    depth = forest.depth(cx)
    if depth <= UNROLLED:
        for _ in range(depth):
            start = step(start)
        return start
    region, types = cx.region([cx.type(start)], lambda at: [step(at)])
    counter = str(cx.new_symbol("level"))
    return cx.b.emit_regions("loop", [start], types, [region], trip=depth, symbol=counter)[0]


def _step(cx: Cx, x: Value, forest: Forest, kind: str) -> Callable[[Value], Value]:
    b, modes = cx.b, [m for m in MODES if (forest.mode == m).any()]

    def table(array: np.ndarray, at: Value, dtype: str) -> Value:
        return b.gather(b.const(array, dtype), at, axis=0)

    def step(at: Value) -> Value:
        element = b.gather_elements(x, table(forest.feature, at, "i64"), axis=1)
        value = table(forest.value, at, kind)
        found = [b.emit(COMPARE[m], [element, value]) for m in modes]
        holds = found[0] if found else b.ne(element, element)
        if len(found) > 1:
            number = np.array([modes.index(m) if m in modes else 0 for m in forest.mode])
            which = table(number, at, "i32")
            for k, other in enumerate(found[1:], 1):
                holds = b.select(b.eq(which, b.scalar(k, "i32")), other, holds)
        if forest.missing.any():
            absent = b.and_(b.isnan(element), table(forest.missing, at, "bool"))
            holds = b.or_(holds, absent)
        return b.select(holds, table(forest.yes, at, "i64"), table(forest.no, at, "i64"))

    return step


def _flat_forest(
    cx: Cx,
    nodes: dict[str, Any],
    leaves: tuple[Ints, Ints, Ints, np.ndarray],
    targets: int,
) -> Forest:
    """From the attributes of the older operators: nodes named by (tree, node)."""
    trees, ids = np.array(nodes["tree"], np.int64), np.array(nodes["id"], np.int64)
    number = {pair: k for k, pair in enumerate(zip(trees.tolist(), ids.tolist(), strict=True))}
    mode = np.array(nodes["mode"])
    unknown = set(mode) - {*MODES, LEAF}
    if unknown or len(number) != len(mode):
        cx.bad(f"node modes {sorted(unknown)}" if unknown else "two nodes have one number")
    leaf, own = mode == LEAF, np.arange(len(mode))

    def branch(name: str) -> np.ndarray:
        places = [
            k if leaf[k] else number[int(trees[k]), int(to)] for k, to in enumerate(nodes[name])
        ]
        return np.array(places, np.int64)

    yes, no = branch("yes"), branch("no")
    reached = set(yes[~leaf].tolist()) | set(no[~leaf].tolist())
    roots = np.array([k for k in own if k not in reached], np.int64)
    missing = np.array(nodes["missing"] or [0] * len(mode), bool)
    value = np.asarray(nodes["value"])
    weights = np.zeros((len(mode), targets), value.dtype)
    given = np.zeros(weights.shape, bool)
    for tree, node, target, weight in zip(*leaves, strict=True):
        weights[number[tree, node], target] += weight
        given[number[tree, node], target] = True
    feature = np.where(leaf, 0, np.array(nodes["feature"], np.int64))
    return Forest(roots, feature, mode, value, yes, no, missing & ~leaf, weights, given)


def _floats(cx: Cx, numbers: Floats, tensor: Any) -> np.ndarray:
    return np.array(numbers, np.float32) if tensor is None else array_of(cx, tensor)


@onnx_op("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
    cx: Cx,
    x: Value,
    *,
    aggregate_function: str = "SUM",
    base_values: Floats = (),
    base_values_as_tensor: Any = None,
    n_targets: int = 1,
    nodes_falsenodeids: Ints = (),
    nodes_featureids: Ints = (),
    nodes_hitrates: Floats = (),
    nodes_hitrates_as_tensor: Any = None,
    nodes_missing_value_tracks_true: Ints = (),
    nodes_modes: Strings = (),
    nodes_nodeids: Ints = (),
    nodes_treeids: Ints = (),
    nodes_truenodeids: Ints = (),
    nodes_values: Floats = (),
    nodes_values_as_tensor: Any = None,
    post_transform: str = "NONE",
    target_ids: Ints = (),
    target_nodeids: Ints = (),
    target_treeids: Ints = (),
    target_weights: Floats = (),
    target_weights_as_tensor: Any = None,
) -> Value:
    """The leaves' weights summed (or else) over the trees, by target."""
    nodes = {
        "tree": nodes_treeids, "id": nodes_nodeids, "mode": nodes_modes,
        "yes": nodes_truenodeids, "no": nodes_falsenodeids, "feature": nodes_featureids,
        "missing": nodes_missing_value_tracks_true,
        "value": _floats(cx, nodes_values, nodes_values_as_tensor),
    }  # fmt: skip
    weights = _floats(cx, target_weights, target_weights_as_tensor)
    leaves = (target_treeids, target_nodeids, target_ids, weights)
    forest = _flat_forest(cx, nodes, leaves, n_targets)
    scores = scores_of(cx, x, forest, aggregate_function)
    base = _floats(cx, base_values, base_values_as_tensor)
    if base.size:
        scores = cx.b.add(scores, cx.b.const(base, cx.type(scores).dtype.name))
    return cx.b.cast(transformed(cx, scores, post_transform), to="f32")


@onnx_op("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
    cx: Cx,
    x: Value,
    *,
    base_values: Floats = (),
    base_values_as_tensor: Any = None,
    class_ids: Ints = (),
    class_nodeids: Ints = (),
    class_treeids: Ints = (),
    class_weights: Floats = (),
    class_weights_as_tensor: Any = None,
    classlabels_int64s: Ints = (),
    classlabels_strings: Strings = (),
    nodes_falsenodeids: Ints = (),
    nodes_featureids: Ints = (),
    nodes_hitrates: Floats = (),
    nodes_hitrates_as_tensor: Any = None,
    nodes_missing_value_tracks_true: Ints = (),
    nodes_modes: Strings = (),
    nodes_nodeids: Ints = (),
    nodes_treeids: Ints = (),
    nodes_truenodeids: Ints = (),
    nodes_values: Floats = (),
    nodes_values_as_tensor: Any = None,
    post_transform: str = "NONE",
) -> tuple[Value, ...]:
    """(label, scores). Trees that vote for one of two classes only decide by 0.5 or by sign.

    By 0.5 where no weight is negative and scores are not logits.
    """
    classes = classlabels_strings or classlabels_int64s
    nodes = {
        "tree": nodes_treeids, "id": nodes_nodeids, "mode": nodes_modes,
        "yes": nodes_truenodeids, "no": nodes_falsenodeids, "feature": nodes_featureids,
        "missing": nodes_missing_value_tracks_true,
        "value": _floats(cx, nodes_values, nodes_values_as_tensor),
    }  # fmt: skip
    weights = _floats(cx, class_weights, class_weights_as_tensor)
    base = _floats(cx, base_values, base_values_as_tensor)
    count = len(classes)
    binary = count == 2 and len(set(class_ids)) == 1
    targets = (0,) * len(class_ids) if binary else class_ids
    leaves = (class_treeids, class_nodeids, targets, weights)
    forest = _flat_forest(cx, nodes, leaves, 1 if binary else count)
    scores = scores_of(cx, x, forest, "SUM")
    if base.size:
        chosen = base[min(class_ids[0], len(base) - 1) :][:1] if binary else base
        scores = cx.b.add(scores, cx.b.const(chosen, cx.type(scores).dtype.name))
    scores = cx.b.cast(scores, to="f32")
    if not binary:
        shown = transformed(cx, scores, post_transform)
        deciding = shown if post_transform == "SOFTMAX_ZERO" else scores  # not monotonic
        return label_of(cx, best_of(cx, deciding), classes), shown
    positive = bool((weights >= 0).all()) and post_transform != "LOGISTIC"
    limit = cx.b.scalar(0.5 if positive else 0.0, scores)
    second = cx.b.gt(cx.b.reshape(scores, dims=cx.dims(scores)[:1]), limit)
    label = label_of(cx, cx.b.cast(second, to="i64"), classes)
    return label, two_scores(cx, scores, post_transform, probability=positive)


@onnx_op("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(
    cx: Cx,
    x: Value,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Ints,
    leaf_weights: Any,
    membership_values: Any = None,
    n_targets: int = 1,
    nodes_falseleafs: Ints,
    nodes_falsenodeids: Ints,
    nodes_featureids: Ints,
    nodes_hitrates: Any = None,
    nodes_missing_value_tracks_true: Ints = (),
    nodes_modes: Any,
    nodes_splits: Any,
    nodes_trueleafs: Ints,
    nodes_truenodeids: Ints,
    post_transform: int = 0,
    tree_roots: Ints,
) -> Value:
    """Leaves stand in tables of their own; a node may ask for membership in a set."""
    splits, weights = array_of(cx, nodes_splits), array_of(cx, leaf_weights)
    modes = [int(m) for m in array_of(cx, nodes_modes)]
    inner, outer = len(modes), len(leaf_targetids)
    if not 0 <= post_transform < len(POST) or not 0 <= aggregate_function < len(AGGREGATES):
        cx.bad("aggregate_function or post_transform is out of range")
    if any(not 0 <= m <= len(MODES) for m in modes):
        cx.bad("a node has an unknown mode")

    def branch(ids: Ints, in_leaves: Ints) -> list[int]:
        return [i + inner if there else i for i, there in zip(ids, in_leaves, strict=True)]

    names = [*MODES, MEMBER]
    rows = _Rows(
        [names[m] for m in modes] + [LEAF] * outer,
        [*nodes_featureids, *[0] * outer],
        [*splits.tolist(), *[0.0] * outer],
        [*branch(nodes_truenodeids, nodes_trueleafs), *range(inner, inner + outer)],
        [*branch(nodes_falsenodeids, nodes_falseleafs), *range(inner, inner + outer)],
        [*(nodes_missing_value_tracks_true or [0] * inner), *[0] * outer],
    )
    members = [] if membership_values is None else array_of(cx, membership_values).tolist()
    rows.expand_members(cx, members)
    table = np.zeros((len(rows.mode), n_targets), splits.dtype)
    given = np.zeros(table.shape, bool)
    table[range(inner, inner + outer), list(leaf_targetids)] = weights
    given[range(inner, inner + outer), list(leaf_targetids)] = True
    forest = Forest(
        np.array(tree_roots, np.int64), np.array(rows.feature), np.array(rows.mode),
        np.array(rows.value, splits.dtype), np.array(rows.yes), np.array(rows.no),
        np.array(rows.missing, bool), table, given,
    )  # fmt: skip
    scores = scores_of(cx, x, forest, AGGREGATES[aggregate_function])
    scores = cx.b.cast(scores, to=cx.type(x).dtype.name)
    return transformed(cx, scores, POST[post_transform])


@dataclass
class _Rows:
    """Columns of the node table while it is made."""

    mode: list[str]
    feature: list[int]
    value: list[float]
    yes: list[int]
    no: list[int]
    missing: list[int]

    def expand_members(self, cx: Cx, values: Sequence[float]) -> None:
        """A test for membership becomes a chain of tests for equality; NaN ends a set."""
        pending = [float(v) for v in values][::-1]
        for node in [k for k, m in enumerate(self.mode) if m == MEMBER]:
            members: list[float] = []
            while pending and not np.isnan(pending[-1]):
                members.append(pending.pop())
            if not pending or not members:
                cx.bad("membership_values does not hold a set for every node that asks")
            pending.pop()
            otherwise, at = self.no[node], node
            for k, member in enumerate(members):
                self.mode[at], self.value[at] = "BRANCH_EQ", member
                self.no[at] = otherwise if k == len(members) - 1 else len(self.mode)
                if k < len(members) - 1:
                    self._copy(at)
                    at = len(self.mode) - 1

    def _copy(self, at: int) -> None:
        columns: list[list[Any]] = [
            self.mode, self.feature, self.value, self.yes, self.no, self.missing,
        ]  # fmt: skip
        for column in columns:
            column.append(column[at])
