"""Records of ATen overloads: their names, torch's rules of promotion, a few compositions in numpy.

No torch is needed: the front end's tests are in tests/torch_front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import pytest

import cuvil.ops.aten  # noqa: F401 - registers the records
from cuvil.errors import UnsupportedError
from cuvil.ir.build import Builder
from cuvil.ir.dims import Dim
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.names import Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.ops.aten.promotion import common
from cuvil.ops.aten.registry import aten, find, full_name, names
from cuvil.ops.interpreter import run


class Call:
    """What a record sees: torch would say which type the result has."""

    where = "a test"

    def __init__(self, b: Builder, *out: TensorType) -> None:
        self.b, self.out = b, out

    @property
    def result(self) -> TensorType:
        return self.out[0]

    def used(self, result: int) -> bool:
        return not result

    def dims(self, value: Value) -> tuple[Dim, ...]:
        return tensor_type(value).dims

    def type(self, value: Value) -> TensorType:
        return tensor_type(value)

    def fail(self, reason: str) -> NoReturn:
        raise UnsupportedError(reason)

    bad = fail


def evaluated(
    overload: str,
    arrays: Sequence[np.ndarray],
    *more: Any,
    like: np.ndarray,
    first: Sequence[Any] = (),
    **keywords: Any,
) -> np.ndarray:
    """What a record's composition means for these arrays; like: of the result's type; first: what
    is passed before the arrays."""
    element = {"float32": "f32", "int64": "i64", "bool": "bool"}
    types = {f"x{k}": TensorType.of(a.shape, element[a.dtype.name]) for k, a in enumerate(arrays)}
    graph = new_graph("test", types, Pool())
    cx = Call(Builder(graph.block, graph.pool), TensorType.of(like.shape, element[like.dtype.name]))
    compose = find(full_name(overload))
    assert compose is not None
    found = compose(cx, *first, *graph.inputs, *more, **keywords)
    finish_graph(graph, {"y": found[0] if isinstance(found, tuple) else found})
    (result,) = run(graph, dict(zip(types, arrays, strict=True))).values()
    assert result.dtype == like.dtype
    return result


def values(*kinds: str) -> tuple[Call, list[Any]]:
    """Tensors of these types, written as `f32[3]`, `i64[]`; other words are numbers."""
    types = {}
    for k, kind in enumerate(kinds):
        name, _, rank = kind.partition("[")
        types[f"x{k}"] = TensorType.of([3] * (rank != "]"), name)
    graph = new_graph("test", types, Pool())
    return Call(Builder(graph.block, graph.pool)), list(graph.inputs)


@pytest.mark.parametrize(
    ("kinds", "numbers", "wanted"),
    [
        (["f32[3]", "i64[3]"], [], "f32"),
        (["i64[3]"], [2.5], "f32"),
        (["f16[3]"], [2.5], "f16"),
        (["f16[3]", "f32[]"], [], "f16"),
        (["f16[3]", "bf16[3]"], [], "f32"),
        (["i32[3]", "i64[]"], [], "i32"),
        (["u8[3]", "i8[3]"], [], "i16"),
        (["bool[3]"], [1], "i64"),
        (["bool[3]", "i8[]"], [], "i8"),
        (["f32[3]"], [True], "f32"),
    ],
)
def test_types_are_promoted_as_torch_does(
    kinds: list[str], numbers: list[Any], wanted: str
) -> None:
    cx, tensors = values(*kinds)
    assert common(cx, *tensors, *numbers) == wanted


def test_names_are_completed() -> None:
    assert full_name("abs") == "aten.abs.default"
    assert full_name("add.Tensor") == "aten.add.Tensor"
    assert full_name("prims.abs.default") == "prims.abs.default"
    assert {"aten.add.Tensor", "aten.mm.default"} <= set(names())


def test_an_overload_has_one_record() -> None:
    with pytest.raises(ValueError, match=r"aten\.abs\.default is registered twice"):
        aten("abs")(lambda cx, x: x)


X = np.array([-7.5, -1.0, 0.0, 2.0, 7.0], np.float32)
N = np.array([-7, -1, 0, 2, 7])


@pytest.mark.parametrize(
    ("overload", "arrays", "more", "meaning"),
    [
        ("floor_divide", [N], [2], lambda x: x // 2),
        ("floor_divide", [X], [2.0], lambda x: x // 2),
        (
            "floor_divide",
            [X, np.full(5, -np.inf, np.float32)],
            [],
            lambda x, y: np.array([0, 0, -0.0, -1, -1], np.float32),
        ),
        ("floor_divide", [np.array([2**63 - 1, -(2**63)])], [-3], lambda x: x // -3),
        (
            "hypot",
            [np.array([3, np.nan], np.float32), np.array([4, np.inf], np.float32)],
            [],
            np.hypot,
        ),
        (
            "atan2",
            [np.array([np.nan, 0], np.float32), np.array([0, -0.0], np.float32)],
            [],
            np.arctan2,
        ),
        (
            "sign",
            [np.array([np.nan, -2, 0], np.float32)],
            [],
            lambda x: np.array([0, -1, 0], np.float32),
        ),
        ("div.Tensor_mode", [N, np.full(5, 2)], [], lambda x, y: np.fix(x / y).astype(int)),
        ("clamp", [X], [-1, 3], lambda x: np.clip(x, -1, 3)),
        ("rsub.Scalar", [X], [1, 2], lambda x: 1 - 2 * x),
        ("flip", [X], [[0]], lambda x: x[::-1]),
        ("roll", [X], [[2], [0]], lambda x: np.roll(x, 2)),
        ("cumsum", [N], [0], np.cumsum),
        ("cummax", [X], [0], np.maximum.accumulate),
        ("slice.Tensor", [X], [0, 1, 5, 2], lambda x: x[1:5:2]),
        ("tril", [np.ones((3, 3), np.float32)], [-1], lambda x: np.tril(x, -1)),
        ("diagonal", [X.reshape(1, 5)], [1], lambda x: x.diagonal(1)),
        ("any", [X], [], lambda x: np.any(x)),
        ("std.correction", [X], [None], lambda x: x.std(ddof=1)),
        (
            "mode",
            [np.array([[3.0, 1, 3, 1, 2], [5, 5, 4, 4, 4]], np.float32)],
            [1],
            lambda x: np.array([1, 4], np.float32),
        ),
        (
            "frexp.Tensor",
            [np.array([-7.5, 0.0, 1e-30, np.inf], np.float32)],
            [],
            lambda x: np.frexp(x)[0],
        ),
        (
            "adaptive_max_pool2d",
            [np.arange(40, dtype=np.float32).reshape(1, 1, 5, 8)],
            [[2, 3]],
            lambda x: np.array([[[[18, 21, 23], [34, 37, 39]]]], np.float32),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_compositions_mean_what_numpy_has(
    overload: str, arrays: list[Any], more: list[Any], meaning: Callable[..., Any]
) -> None:
    keywords = {"rounding_mode": "trunc"} if overload == "div.Tensor_mode" else {}
    keywords |= {"correction": 1} if overload == "std.correction" else {}
    wanted = np.asarray(meaning(*arrays))
    found = evaluated(overload, arrays, *more, like=wanted, **keywords)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_masks_give_numpys_assignment() -> None:
    x, mask = np.zeros((3, 2), np.float32), np.array([True, False, True])
    rows = np.array([[1, 2], [3, 4]], np.float32)
    wanted = x.copy()
    wanted[mask] = rows
    graph = new_graph(
        "test",
        {"x": TensorType.of((3, 2), "f32"), "m": TensorType.of((3,), "bool"),
         "v": TensorType.of((2, 2), "f32")},
        Pool(),
    )  # fmt: skip
    call = Call(Builder(graph.block, graph.pool), TensorType.of((3, 2), "f32"))
    compose = find("aten.index_put.default")
    assert compose is not None
    data, chosen, values_ = graph.inputs
    finish_graph(graph, {"y": compose(call, data, [chosen], values_)})
    (found,) = run(graph, {"x": x, "m": mask, "v": rows}).values()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (1, [np.pi**2 / 6, np.pi**2 / 2, np.pi**2 / 2 + 4, np.inf]),
        (2, [-2.404113806, -16.828796644, -0.828796644, -np.inf]),  # zeta(3) = 1.2020569
    ],
)
def test_derivatives_of_digamma(order: int, wanted: list[float]) -> None:
    x = np.array([1.0, 0.5, -0.5, 0.0], np.float32)
    found = evaluated("polygamma", [x], like=x, first=[order])
    np.testing.assert_allclose(found, np.array(wanted, np.float32), rtol=1e-6)


def test_bags_of_rows() -> None:
    weight = np.array([[1, -2], [np.nan, 3], [-4, 5]], np.float32)
    indices, offsets = np.array([0, 2, 1, 0]), np.array([0, 2, 2, 3])
    bags = [weight[[0, 2]], weight[:0], weight[[1]], weight[[0]]]
    meanings = (np.sum, np.mean, lambda r, axis: r.max(axis, initial=-np.inf))
    for mode, meaning in enumerate(meanings):
        rows = [meaning(r, axis=0) if len(r) else np.zeros(2) for r in bags]
        wanted = np.array(rows, np.float32)
        found = evaluated("_embedding_bag", [weight, indices, offsets], False, mode, like=wanted)
        np.testing.assert_array_equal(found, wanted)
