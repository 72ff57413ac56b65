"""`dynamic_shapes`: promised ranges and divisors, kept by models or refused, checked at calls."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import cuvil
from cuvil.aot.write import compile_to_folder
from cuvil.cli.arguments import options_of, parse_dynamic
from cuvil.extents import Extents, parse_extents
from tests import small_models

POSITIONS = """positions (float[B, seq] x, float[256] p) => (float[B, seq] y) {
  from = Constant<value = int64[1] {0}>()  to = Shape<start = 1>(x)
  row = Slice(p, from, to, from)  y = Add(x, row) }"""
ROWS_OF_SIX = """rows (float[B, seq] x) => (float[N, 6] y) {
  shape = Constant<value = int64[2] {-1, 6}>()  y = Reshape(x, shape) }"""
FIXED = "fixed (float[B, seq] x, float[1, 7] p) => (float[B, seq] y) { y = Add(x, p) }"
TWO = "two (float[B, seq] x, float[1, other] p) => (float[B, seq] y) { y = Add(x, p) }"
TOP_FIVE = """top (float[B, seq] x) => (float[B, 5] y, int64[B, 5] i) {
  k = Constant<value = int64[1] {5}>()  y, i = TopK(x, k) }"""


def compiled(graph: str | onnx.ModelProto, dynamic: Any) -> cuvil.Engine:
    model = small_models.model(graph) if isinstance(graph, str) else graph
    return cuvil.compile(model, dynamic_shapes=dynamic, cache=False)


@pytest.mark.parametrize(
    "value",
    ["128..512:8", "128:512:8", "128..512, multiple of 8", "125..519 multiple of 8",
     (128, 512, 8), range(128, 513, 8)],
)  # fmt: skip
def test_one_promise_is_written_in_many_ways(value: Any) -> None:
    assert parse_extents("seq", value) == Extents(128, 512, 8)


@pytest.mark.parametrize("value", ["", "1.5", "9..3", "3..5:8", (1,), (-1, 5), range(3, 9, 2), 7])
def test_what_is_no_promise_is_refused(value: Any) -> None:
    with pytest.raises(cuvil.OptionError, match="dynamic shape 'seq'"):
        parse_extents("seq", value)


def test_a_call_is_told_both_values() -> None:
    engine = compiled(POSITIONS, {"x": {1: "128..256:8"}})
    p = np.arange(256, dtype=np.float32)
    x = np.ones((2, 136), np.float32)
    np.testing.assert_array_equal(engine(x, p), x + p[:136])
    with pytest.raises(cuvil.ShapeMismatchError, match=r"'x': dim 1 \(seq\) is 64, outside of 128"):
        engine(x[:, :64], p)
    with pytest.raises(
        cuvil.ShapeMismatchError, match=r"dim 1 of input 'x': .*multiple of 8 \(.*seq = 130\)"
    ):
        engine(x[:, :130], p)


@pytest.mark.parametrize(
    ("graph", "dynamic", "message"),
    [
        (POSITIONS, {"seq": "128..512"}, r"'row' \(Slice\) needs seq = 128..256; .* 128..512"),
        (FIXED, {"seq": "2..9"}, r"'y' \(Add\) needs seq = 7; dynamic_shapes promises .* 2..9"),
        (TWO, {"seq": "2..9", "other": "2..4"}, r"'y' \(Add\) needs other = seq; .* = 2..4 and"),
        (TOP_FIVE, {"seq": "1..9"}, r"'y' \(TopK\) needs seq = 5..9"),
        (ROWS_OF_SIX, {"seq": "1..9", "B": "1..2"}, r"y \(reshape\) needs .* which B = 1, seq = 1"),
        (FIXED, {"p": {1: "2..9"}}, "input 'p', axis 1: the model fixes it to 7"),
    ],
)
def test_a_node_that_breaks_a_promise_is_named(graph: str, dynamic: Any, message: str) -> None:
    with pytest.raises(cuvil.ShapeMismatchError, match=message):
        compiled(graph, dynamic)


def test_a_promise_that_a_model_keeps_is_no_error() -> None:
    rows = compiled(ROWS_OF_SIX, {"seq": "6..60:6", "B": "1..2"})
    assert rows(np.ones((2, 12), np.float32)).shape == (4, 6)
    both = compiled(TWO, {"seq": "2..9", "other": "2..9"})
    with pytest.raises(cuvil.ShapeMismatchError):
        both(np.ones((1, 3), np.float32), np.ones((1, 4), np.float32))


@pytest.mark.parametrize("dynamic", [{"sequence": "1..9"}, {"x": {2: "1..9"}}])
def test_unknown_names_and_axes_are_refused(dynamic: Any) -> None:
    with pytest.raises(cuvil.OptionError, match=r"rank 2|B, seq"):
        compiled(FIXED, dynamic)


def test_bounds_never_widen_what_a_model_needs() -> None:
    engine = cuvil.compile(small_models.model(TOP_FIVE), bounds={"seq": (1, 9)}, cache=False)
    assert engine.model.symbols["seq"] == (5, 9)


def test_a_c_program_gets_a_status(tmp_path: Path) -> None:
    options = options_of(dynamic_shape=["N=8..64:8"], cpu="x86-64")
    made = compile_to_folder(small_models.dense(), tmp_path, options)
    run = ctypes.CDLL(str(made.library)).dense_inference
    x, y = np.ones((64, 8), np.float32), np.zeros((64, 5), np.float32)
    places = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
    mismatch = 4  # CUVIL_SHAPE_MISMATCH
    got = {rows: run(ctypes.c_int64(rows), *places) for rows in (16, 64, 12, 72)}
    assert got == {16: 0, 64: 0, 12: mismatch, 72: mismatch}


def test_the_command_line_and_the_header_say_it(tmp_path: Path) -> None:
    assert parse_dynamic(["N=8..64:8"]) == {"N": Extents(8, 64, 8)}
    assert parse_dynamic(["x[1]=N", "x[0]=:9"]) == {"x": {1: "N", 0: Extents(0, 9)}}
    for word in ("N", "x[a]=N", "=1..2"):
        with pytest.raises(cuvil.OptionError, match="--dynamic-shape"):
            parse_dynamic([word])
    options = options_of(dynamic_shape=["N=8..64:8"], cpu="x86-64")
    made = compile_to_folder(small_models.dense(), tmp_path, options, emit=("o",))
    header = made.files["header"].read_text()
    assert " * N: 8 to 64, a multiple of 8; else CUVIL_SHAPE_MISMATCH" in header
    assert made.manifest["symbols"] == [{"name": "N", "min": 8, "max": 64, "multiple": 8}]
    compiler = cuvil.Compiler.load("none.onnx").optimize(dynamic_shapes={"N": "8..64:8"})
    assert compiler.options.dynamic == {"N": Extents(8, 64, 8)}
