"""What `cuvil.compile` accepts, how it fixes dims, and what it says of what it cannot take."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper, parser

import cuvil
from tests import small_models

ONES = np.ones((2, 3), np.float32)


def compiled(model: object = None, **options: object) -> cuvil.Engine:
    return cuvil.compile(small_models.dynamic() if model is None else model, cache=False, **options)  # type: ignore[arg-type]


def test_a_path_bytes_and_a_message_give_the_same(tmp_path: Path) -> None:
    made = small_models.dynamic()
    path = small_models.saved(made, tmp_path / "m.onnx")
    for source in (path, str(path), made.SerializeToString(), made):
        total, _ = compiled(source)(ONES, ONES)
        np.testing.assert_array_equal(total, 2 * ONES)


def test_dims_become_static() -> None:
    assert compiled(dims={"N": 2}).get_inputs()[0].dims == (2, 3)
    spec = [("x", "float32", (2, 3)), ("y", np.float32, ("N", None))]
    assert compiled(input_spec=spec).get_inputs()[1].dims == (2, 3)


def test_bounds_are_checked_when_called() -> None:
    engine = compiled(bounds={"N": (1, 4)})
    engine(ONES, ONES)
    with pytest.raises(cuvil.ShapeMismatchError):
        engine(np.ones((5, 3), np.float32), np.ones((5, 3), np.float32))


def test_a_dynamic_memory_plan_needs_no_arena() -> None:
    graph = """net (float[N, 8] x) => (float[N, 8] y, int64[2, K] at) {
      e = Exp(x)  s = CumSum(e, axis)  y = Softmax(s)  at = NonZero(s) }"""
    model = small_models.model(graph)
    model.graph.initializer.append(numpy_helper.from_array(np.array(1), "axis"))
    planned, dynamic = (
        cuvil.compile(model, memory_plan=how, cache=False) for how in ("static", "dynamic")
    )
    for rows in (3, 5, 3):
        x = np.random.default_rng(rows).standard_normal((rows, 8), np.float32)
        for got, expected in zip(dynamic(x), planned(x), strict=True):
            np.testing.assert_array_equal(got, expected)
    assert dynamic.model.arena_bytes == 0 < planned.model.arena_bytes


@pytest.mark.parametrize("level", [0, "O1", "-O3"])
def test_optimisation_levels(level: int | str) -> None:
    total, _ = compiled(opt_level=level)(ONES, ONES)
    np.testing.assert_array_equal(total, 2 * ONES)


WRONG = [
    ({"dims": {"M": 2}}, cuvil.ModelError, "no input has a dimension called M; there are N"),
    ({"input_spec": [("z", "float32", (2, 3))]}, cuvil.InputError, "no input is called 'z'"),
    ({"input_spec": [("x", "float64", (2, 3))]}, cuvil.DTypeError, "'x' is float64"),
    ({"input_spec": [("x", "float32", (2,))]}, cuvil.ShapeMismatchError, "rank 1"),
    ({"input_spec": [("x", "float32", (2, 4))]}, cuvil.ShapeMismatchError, "axis 1 is 4"),
    ({"input_spec": ["x"]}, cuvil.InputError, "expected rows"),
    ({"opt_level": 7}, cuvil.OptionError, "opt_level"),
    ({"precision": "int1"}, cuvil.OptionError, "int1"),
    ({"memory_plan": "elastic"}, cuvil.OptionError, "memory_plan"),
    ({"passes": ["nonsense"]}, cuvil.OptionError, "unknown pass 'nonsense'"),
    ({"target": "pdp11"}, cuvil.TargetError, "unknown target 'pdp11'"),
    ({"cpu": "486dx"}, cuvil.TargetError, "unknown cpu '486dx'"),
    ({"passes": ["fuse_norm"]}, cuvil.OptionError, "did you mean fuse_norm_act"),
    ({"disable_rules": ["cast_of_casts"]}, cuvil.OptionError, "did you mean cast_of_cast"),
    ({"features": "fast"}, cuvil.TargetError, "needs a sign"),
    ({"threads": 0}, cuvil.OptionError, "threads"),
    ({"model": 3}, cuvil.InputError, "not a int"),
    ({"model": partial(print)}, cuvil.UnsupportedError, "a partial cannot be compiled"),
    ({"model": "/no/such.onnx"}, cuvil.ModelError, "/no/such.onnx.*No such file"),
    ({"model": b"nonsense"}, cuvil.ModelError, "<bytes>"),
]


@pytest.mark.parametrize(("options", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_what_cannot_be_is_said(
    options: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        compiled(**options)


def test_external_data_from_beside_the_file_a_folder_or_a_reader(tmp_path: Path) -> None:
    made = small_models.dense(rows=2)
    path = small_models.saved_with_data(made, tmp_path / "m.onnx")
    x = np.ones((2, 8), np.float32)
    expected = small_models.dense_result(small_models.dense(rows=2), x)
    data = (tmp_path / "weights.data").read_bytes()

    def read(location: str, offset: int, length: int) -> bytes:
        assert location == "weights.data"
        return data[offset : offset + length]

    for engine in (
        compiled(path),
        compiled(path.read_bytes(), folder=tmp_path),
        compiled(path.read_bytes(), weights_reader=read),
    ):
        np.testing.assert_allclose(engine(x), expected, rtol=1e-5)
    with pytest.raises(cuvil.ModelError, match="no folder"):
        compiled(path.read_bytes())
    with pytest.raises(cuvil.ModelError, match="the reader gave 1 bytes"):
        compiled(path.read_bytes(), weights_reader=lambda location, offset, length: b"x")


def test_stages_are_told() -> None:
    stages: list[str] = []
    compiled(progress=stages.append)
    assert stages[0] == "import"
    assert {"rewrite", "plan", "compile"} <= set(stages)


def test_a_diagonal_of_free_sizes() -> None:
    """Its places are numbers without operands, computed where a kernel reads them."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> '
        'g (float[B, N, N] x) => (float[B, N] y) { y = Einsum<equation="bii->bi">(x) }'
    )
    x = np.arange(18, dtype=np.float32).reshape(2, 3, 3)
    got = compiled(model)(x)
    np.testing.assert_array_equal(got, [[0, 4, 8], [9, 13, 17]])
