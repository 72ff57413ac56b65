"""ai.onnx.ml: trees, linear models, support vectors and features, by hand-made numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import f32, i64

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter

X = f32([[1, 5], [3, 5], [3, -5]])
STUMP = {  # x[0] <= 2 ? leaf 1 : (x[1] > 0 ? leaf 3 : leaf 4)
    "nodes_treeids": [0] * 5,
    "nodes_nodeids": [0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    "nodes_values": [2.0, 0.0, 0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 3, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0],
}


def run_ml(op: str, x: np.ndarray, outputs: int = 1, version: int = 3, **attrs: Any) -> Any:
    """One node of ai.onnx.ml on one input, in the interpreter."""
    names = [f"y{k}" for k in range(outputs)]
    node = onnx.helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attrs)
    kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    info = onnx.helper.make_tensor_value_info("x", kind, x.shape)
    graph = onnx.helper.make_graph(
        [node], "ml", [info], [onnx.ValueInfoProto(name=name) for name in names]
    )
    opsets = [onnx.helper.make_opsetid("ai.onnx.ml", version), onnx.helper.make_opsetid("", 17)]
    source = onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)
    graph = import_model(source)
    graph.module.verify()
    results = list(interpreter.run(graph, {"x": x}).values())
    return results[0] if outputs == 1 else results


@pytest.mark.parametrize(
    "aggregate, expected", [("SUM", [10, 20, 30]), ("AVERAGE", [10, 20, 30]), ("MIN", [10, 20, 30])]
)
def test_one_tree_gives_the_weight_of_its_leaf(aggregate, expected):
    leaves = {"target_treeids": [0] * 3, "target_nodeids": [1, 3, 4], "target_ids": [0] * 3}
    weights = {"target_weights": [10.0, 20.0, 30.0], "aggregate_function": aggregate}
    y = run_ml("TreeEnsembleRegressor", X, **STUMP, **leaves, **weights)
    assert y[:, 0].tolist() == expected


def test_a_deep_tree_walks_in_a_loop():
    """A chain of 20 comparisons: leaf k for x in (k, k + 1]."""
    n = 20
    chain = {
        "nodes_treeids": [0] * (2 * n + 1),
        "nodes_nodeids": list(range(2 * n + 1)),
        "nodes_featureids": [0] * (2 * n + 1),
        "nodes_modes": ["BRANCH_LEQ", "LEAF"] * n + ["LEAF"],
        "nodes_values": [v for k in range(n) for v in (float(k), 0.0)] + [0.0],
        "nodes_truenodeids": [v for k in range(n) for v in (2 * k + 1, 0)] + [0],
        "nodes_falsenodeids": [v for k in range(n) for v in (2 * k + 2, 0)] + [0],
        "target_treeids": [0] * (n + 1),
        "target_nodeids": [*range(1, 2 * n, 2), 2 * n],
        "target_ids": [0] * (n + 1),
        "target_weights": [float(k) for k in range(n + 1)],
    }
    y = run_ml("TreeEnsembleRegressor", f32([[-3], [0.5], [7.5], [99]]), **chain)
    assert y[:, 0].tolist() == [0, 1, 8, 20]


def test_two_classes_with_weights_of_one():
    leaves = {"class_treeids": [0] * 3, "class_nodeids": [1, 3, 4], "class_ids": [0] * 3}
    probabilities = {"class_weights": [0.25, 0.75, 1.0], "classlabels_int64s": [7, 8]}
    label, scores = run_ml("TreeEnsembleClassifier", X, 2, **STUMP, **leaves, **probabilities)
    assert label.tolist() == [7, 8, 8]
    assert scores.tolist() == [[0.75, 0.25], [0.25, 0.75], [0, 1]]


def test_a_missing_value_follows_its_own_branch():
    leaves = {"target_treeids": [0] * 3, "target_nodeids": [1, 3, 4], "target_ids": [0] * 3}
    weights = {"target_weights": [10.0, 20.0, 30.0]}
    x = f32([[np.nan, 5]])
    tracks = {"nodes_missing_value_tracks_true": [1, 0, 0, 0, 0]}
    assert run_ml("TreeEnsembleRegressor", x, **STUMP, **leaves, **weights) == 20
    assert run_ml("TreeEnsembleRegressor", x, **STUMP, **leaves, **weights, **tracks) == 10


def test_hostile_trees_are_errors():
    leaves = {"target_treeids": [0], "target_nodeids": [1], "target_ids": [0]}
    weights = {"target_weights": [1.0]}
    for change in ({"nodes_featureids": [9, 0, 1, 0, 0]}, {"nodes_truenodeids": [7, 0, 3, 0, 0]}):
        with pytest.raises(ModelError):
            run_ml("TreeEnsembleRegressor", X, **{**STUMP, **change}, **leaves, **weights)


def test_a_linear_classifier_of_two_classes_goes_by_the_sign():
    model = {"coefficients": [1.0, 1.0], "intercepts": [-7.0], "classlabels_ints": [4, 5]}
    label, scores = run_ml("LinearClassifier", X, 2, **model)
    assert label.tolist() == [4, 5, 4]
    assert scores.tolist() == [[2, -1], [0, 1], [10, -9]]


def test_support_vectors_vote():
    vectors = {"support_vectors": [0.0, 0, 4, 4], "vectors_per_class": [1, 1]}
    kernel = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 0.0]}
    model = {"coefficients": [1.0, -1.0], "rho": [0.0], "classlabels_ints": [1, 2]}
    label, scores = run_ml("SVMClassifier", f32([[0, 1], [4, 5]]), 2, **vectors, **kernel, **model)
    assert label.tolist() == [1, 2]
    assert (scores[:, 0] == -scores[:, 1]).all()


def test_two_classes_of_logits_decide_by_sign():
    leaves = {"class_treeids": [0] * 3, "class_nodeids": [1, 3, 4], "class_ids": [0] * 3}
    logits = {"class_weights": [0.25, 0.75, 0.0], "classlabels_int64s": [7, 8]}
    forest = {**STUMP, **leaves, **logits, "post_transform": "LOGISTIC"}
    label, scores = run_ml("TreeEnsembleClassifier", X, 2, **forest)
    assert label.tolist() == [8, 8, 7]
    np.testing.assert_allclose(scores[:, 1], 1 / (1 + np.exp(-f32([0.25, 0.75, 0]))), rtol=1e-6)
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-6)
    forest["base_values"] = [-0.5]
    assert run_ml("TreeEnsembleClassifier", X, 2, **forest)[0].tolist() == [7, 8, 7]


def test_the_greatest_share_decides_where_zeros_have_none():
    leaves = {"class_treeids": [0] * 3, "class_nodeids": [1, 3, 4], "class_ids": [0, 1, 2]}
    votes = {"class_weights": [-0.5, -1.0, 2.0], "classlabels_int64s": [7, 8, 9]}
    forest = {**STUMP, **leaves, **votes, "post_transform": "SOFTMAX_ZERO"}
    label, scores = run_ml("TreeEnsembleClassifier", X, 2, **forest)
    assert label.tolist() == [7, 8, 9]
    assert scores.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_probabilities_of_three_classes_couple_those_of_pairs():
    """Near the minimiser of the sum of (r_ji p_i - r_ij p_j)^2; iterations end at 0.005 / 3."""
    vectors = {"support_vectors": [1, 0, 0, 1, -1, -1], "vectors_per_class": [1, 1, 1]}
    model = {"coefficients": [1, 1, -1, 1, -1, -1], "rho": [0.1, -0.2, 0.3],
             "classlabels_ints": [4, 5, 6]}  # fmt: skip
    platt = {"prob_a": [-1.5, -1.0, -2.0], "prob_b": [0.1, 0.0, -0.1]}
    x = f32([[1, 0.2], [0.3, 1], [-1, -0.5], [0, 0]])
    label, p = run_ml("SVMClassifier", x, 2, **vectors, **model, **platt)
    raw = run_ml("SVMClassifier", x, 2, **vectors, **model)[1]
    for row, scores in zip(p, raw, strict=True):
        r = np.zeros((3, 3))
        for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            r[i, j] = 1 / (1 + np.exp(platt["prob_a"][k] * scores[k] + platt["prob_b"][k]))
            r[j, i] = 1 - r[i, j]
        q = np.diag((r**2).sum(0)) - r.T * r
        system = np.block([[q, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
        best = np.linalg.solve(system, [0, 0, 0, 1])[:3]
        np.testing.assert_allclose(row, best, atol=0.005)
        assert abs(row.sum() - 1) < 1e-5
    wins = np.stack([(raw[:, :2] > 0).sum(1), (raw[:, 0] <= 0) + 0 + (raw[:, 2] > 0),
                     (raw[:, 1:] <= 0).sum(1)])  # fmt: skip
    assert label.tolist() == (4 + wins.argmax(0)).tolist()


def test_maps_are_refused_with_the_way_out():
    with pytest.raises(UnsupportedError, match="zipmap"):
        run_ml("ZipMap", X, classlabels_int64s=[1, 2])


def test_features():
    assert run_ml("Scaler", X, offset=[1.0], scale=[2.0])[0].tolist() == [0, 8]
    assert run_ml("Normalizer", X, norm="L1")[0].tolist() == [f32(1 / 6), f32(5 / 6)]
    encoder = {"keys_int64s": [3, 1], "values_floats": [0.5, 0.25], "default_float": 9.0}
    assert run_ml("LabelEncoder", i64([1, 2, 3]), **encoder).tolist() == [0.25, 9, 0.5]
    one_hot = run_ml("OneHotEncoder", i64([1, 4]), cats_int64s=[4, 1])
    assert one_hot.tolist() == [[0, 1], [1, 0]]
    filled = run_ml("Imputer", f32([[np.nan, 2]]), imputed_value_floats=[7.0, 8.0],
                    replaced_value_float=float("nan"))  # fmt: skip
    assert filled.tolist() == [[7, 2]]
