"""Operators on strings: in the interpreter, and as programs whose kernels are interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import i64, model, node_model

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases

OPSET = 21
TREE = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3,
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [2.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1],
        "class_weights": [1.0, 1.0]}  # fmt: skip


def texts(values: Any) -> np.ndarray:
    return np.array(values, object)


def both(source: onnx.ModelProto, *inputs: np.ndarray) -> list[Any]:
    """The outputs as lists, on which the graph and its plan agree."""
    graph = import_model(source)
    feeds = dict(zip(graph.input_names, inputs, strict=True))
    meaning = interpreter.run(graph, feeds)
    run_phases(graph)
    plan = make_plan(graph)
    verify_plan(plan)
    planned = run_plan(plan, feeds)
    for name, value in meaning.items():
        assert value.dtype == planned[name].dtype
        assert value.tolist() == planned[name].tolist()
    return [value.tolist() for value in meaning.values()]


def node(op: str, *inputs: Any, outputs: int = 1, domain: str = "", **attrs: Any) -> Any:
    arrays = [v if isinstance(v, np.ndarray) else texts(v) for v in inputs]
    source = node_model(op, list(arrays), outputs, OPSET, domain=domain, **attrs)
    if domain:
        source.opset_import.append(onnx.helper.make_opsetid(domain, 4))
    results = both(source, *arrays)
    return results[0] if outputs == 1 else results


def label(*inputs: Any, op: str = "LabelEncoder", outputs: int = 1, **attrs: Any) -> Any:
    return node(op, *inputs, outputs=outputs, domain="ai.onnx.ml", **attrs)


def test_concatenation_broadcasts():
    assert node("StringConcat", [["a"], ["é"]], ["x", "", "z\0"]) == [
        ["ax", "a", "az\0"],
        ["éx", "é", "éz\0"],
    ]


def test_strings_are_equal_byte_by_byte():
    assert node("Equal", ["a", "", "ab", "e\u0301"], ["a", "", "abc", "é"]) == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "attrs, x, parts, counts",
    [
        ({"delimiter": ","}, ["a,b", "", ",", "abc"],
         [["a", "b"], ["", ""], ["", ""], ["abc", ""]], [2, 1, 2, 1]),
        ({}, ["  a\u2003b\n", "", " "], [["a", "b"], ["", ""], ["", ""]], [2, 0, 0]),
        ({"delimiter": "--", "maxsplit": 1}, ["a--b--c", "---"],
         [["a", "b--c"], ["", "-"]], [2, 2]),
        ({"maxsplit": 1}, ["a b  c "], [["a", "b  c "]], [2]),
        ({"delimiter": ","}, [], [], []),
    ],
)  # fmt: skip
def test_a_split_pads_with_empty_strings(attrs, x, parts, counts):
    assert node("StringSplit", x, outputs=2, **attrs) == [parts, counts]


def test_stop_words_go_before_the_case_changes():
    x = ["Monday", "tuesday", "ÉTÉ", "straße"]
    upper = {"case_change_action": "UPPER"}
    assert node("StringNormalizer", x, **upper) == ["MONDAY", "TUESDAY", "ÉTÉ", "STRAßE"]
    some = {"stopwords": ["monday", "été"], **upper}
    assert node("StringNormalizer", x, **some) == ["TUESDAY", "STRAßE"]
    exact = node("StringNormalizer", [x], is_case_sensitive=1, **some)
    assert exact == [["MONDAY", "TUESDAY", "ÉTÉ", "STRAßE"]]
    assert node("StringNormalizer", ["monday"], stopwords=["monday"]) == [""]


@pytest.mark.parametrize(
    "x, kept", [([], [""]), (["b"], [""]), (["a"], ["a"]), (["a", "b", "c"], ["a", "c"])]
)
def test_stop_words_of_any_number_of_strings(x, kept):
    source = model(
        """m (string[N] x) => (string[?] y) {
            y = StringNormalizer<stopwords = ["b"], is_case_sensitive = 1>(x)
        }""",
        OPSET,
    )
    assert both(source, texts(x)) == [kept]


def test_patterns_match_in_full():
    x = ["www.google.com", "abc", "é1"]
    assert node("RegexFullMatch", x, pattern=r"www\.[\w.-]+\.com") == [True, False, False]
    assert node("RegexFullMatch", x, pattern=r"\pL+\d?") == [False, True, True]


@pytest.mark.parametrize(
    "pattern, error, reason",
    [
        (r"(a)\1", UnsupportedError, "backreference"),
        (r"a(?=b)", UnsupportedError, "look-ahead"),
        (r"a**", ModelError, "nothing to repeat"),
        (r"(a", ModelError, "without"),
    ],
)
def test_what_is_no_pattern_of_re2_is_refused_by_name(pattern, error, reason):
    with pytest.raises(error, match=reason):
        node("RegexFullMatch", ["a"], pattern=pattern)


def test_labels_to_numbers_and_back():
    keys = {"keys_strings": ["b", "a", "é"], "values_int64s": [1, 2, 3]}
    assert label(["a", "b", "x", "é"], **keys, default_int64=9) == [2, 1, 9, 3]
    back = {"keys_int64s": [5, 6], "values_strings": ["five", "six"]}
    assert label(i64([6, 7]), **back) == ["six", "_Unused"]
    both_ways = {"cats_int64s": [4, 5], "cats_strings": ["four", "five"]}
    assert label(["five", "six"], op="CategoryMapper", **both_ways) == [5, -1]
    assert label(i64([4, 9]), op="CategoryMapper", **both_ways) == ["four", "_Unused"]
    assert label(["b", "z"], op="OneHotEncoder", cats_strings=["a", "b"]) == [[0, 1], [0, 0]]


def test_a_tree_tells_classes_by_name():
    x = np.array([[1], [3]], np.float32)
    names = {"classlabels_strings": ["few", "many"]}
    assert label(x, op="TreeEnsembleClassifier", outputs=2, **TREE, **names)[0] == ["few", "many"]


def test_words_are_counted():
    attrs = {"max_gram_length": 1, "min_gram_length": 1, "max_skip_count": 0, "mode": "TF",
             "ngram_counts": [0], "ngram_indexes": [0, 1],
             "pool_strings": ["to", "be"]}  # fmt: skip
    assert node("TfIdfVectorizer", ["to", "be", "or", "be"], **attrs) == [1, 2]


def test_strings_move_like_anything_else():
    source = model(
        """m (string[N,2] x, bool c) => (string[?,?] y, string[?] z) {
            first = Constant<value_ints: ints = [0]>()
            none = Constant<value_strings: strings = ["-", "é"]>()
            t = Transpose<perm = [1, 0]>(x)
            two = Concat<axis = 1>(t, t)
            picked = Gather<axis = 0>(two, first)
            y = Where(c, picked, picked)
            z = If (c) <then_branch = a () => (string[2] p) { p = Identity(none) },
                        else_branch = b () => (string[2] q) { q = StringConcat(none, none) }>
        }""",
        OPSET,
    )
    x = texts([["a", "b"], ["c", "d"]])
    assert both(source, x, np.array(True)) == [[["a", "c", "a", "c"]], ["-", "é"]]
    assert both(source, x, np.array(False))[1] == ["--", "éé"]


@pytest.mark.parametrize(
    "op, inputs, expected, attrs",
    [
        ("Squeeze", [[["a"]]], "a", {}),
        ("Tile", [["a", "b"], i64([2])], ["a", "b", "a", "b"], {}),
        ("Expand", [[["a"]], i64([2, 2])], [["a", "a"], ["a", "a"]], {}),
        ("Pad", [["a"], i64([1, 1]), texts("-")], ["-", "a", "-"], {}),
        ("Pad", [["a"], i64([0, 1])], ["a", ""], {}),
        ("GatherElements", [["a", "b"], i64([1, 1, 0])], ["b", "b", "a"], {}),
        ("ScatterElements", [["a", "b"], i64([1]), ["c"]], ["a", "c"], {}),
        ("ScatterND", [["a", "b"], i64([[0]]), ["c"]], ["c", "b"], {}),
        ("OneHot", [i64([1]), i64([2]), ["off", "on"]], [["off", "on"]], {}),
        ("ReverseSequence", [[["a"], ["b"]], i64([2])], [["b"], ["a"]], {}),
        ("Compress", [["a", "b"], np.array([False, True])], ["b"], {}),
        ("NonZero", [["", "a"]], [[1]], {}),
    ],
)
def test_each_operator_that_moves_elements(op, inputs, expected, attrs):
    assert node(op, *inputs, **attrs) == expected


def test_distinct_strings_are_sorted_by_code_points():
    y, first, inverse, counts = node("Unique", ["é", "a", "é", "", "z"], outputs=4)
    assert y == ["", "a", "z", "é"] and counts == [1, 1, 1, 2]
    assert first == [3, 1, 4, 0] and inverse == [3, 1, 3, 0, 2]


@pytest.mark.parametrize(
    "op, inputs, error, reason",
    [
        ("Add", [["a"], ["b"]], ModelError, "add does not take"),
        ("ReduceMax", [["a"]], ModelError, "reduce does not compute with strings"),
        ("MatMul", [[["a"]], [["a"]]], ModelError, "does not compute with strings"),
        ("StringConcat", [["a"], i64([1])], ModelError, "takes strings, not i64"),
    ],
)
def test_nothing_is_calculated_with_strings(op, inputs, error, reason):
    with pytest.raises(error, match=reason):
        node(op, *inputs)


def test_numbers_are_not_cast_to_strings():
    with pytest.raises(UnsupportedError, match="a cast from int64 to string is not supported"):
        node("Cast", i64([1]), to=onnx.TensorProto.STRING)
    with pytest.raises(UnsupportedError, match="a cast from string to float32 is not supported"):
        node("Cast", ["1"], to=onnx.TensorProto.FLOAT)


def test_a_loop_carries_strings():
    source = model(
        """m (int64 n, string s) => (string y, string[k] all) {
            go = Constant<value = bool {1}>()
            y, all = Loop(n, go, s) <body = step (int64 i, bool c, string before)
                => (bool d, string after, string each) {
                    d = Identity(c)
                    after = StringConcat(before, s)
                    each = Identity(after)
                }>
        }""",
        OPSET,
    )
    assert both(source, np.array(2), texts("ab")) == ["ababab", ["abab", "ababab"]]


def test_numpys_own_text_is_taken():
    source = node_model("StringConcat", [texts(["a"]), texts(["b"])], 1, OPSET)
    assert both(source, np.array(["a"]), np.array(["b"], np.dtypes.StringDType())) == [["ab"]]
