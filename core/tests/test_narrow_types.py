"""Narrow types: compiled code against numpy's meaning for every code, and the meaning against
ml_dtypes and the tables of ONNX's Cast."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request
from cuvil.ir.dtypes import DTYPES, dtype, from_numpy
from cuvil.ops.scalars import evaluate

LANES = 8
NARROW = [row.name for row in DTYPES if row.is_narrow]
WIDE = [row.name for row in DTYPES if not row.is_narrow and not row.is_string]
FLOATS = [name for name in NARROW if dtype(name).is_float]
FLOAT8 = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"]
MODES = ("up", "down", "nearest")

PAIRS = [(a, b) for a in NARROW for b in WIDE + NARROW] + [(a, b) for a in WIDE for b in NARROW]
CASTS = [("cast", a, {"to": b}) for a, b in PAIRS]
MODED = [
    ("cast_narrow", source, {"to": to, "saturate": saturate, "round_mode": mode})
    for source in ("f32", "f16", "f64", "i32")
    for to in FLOATS
    for saturate in (0, 1)
    for mode in (MODES if to == "f8e8m0" else MODES[:1])
]
MOVES = [("identity", name, {}) for name in NARROW] + [("select", name, {}) for name in NARROW]
MOVES += [("bitcast", name, {"of": name, "to": to}) for name, to in [
    ("f8e5m2", "u8"), ("u8", "f8e4m3fn"), ("i4", "u4"), ("f4e2m1", "i4"), ("u2", "i2"),
]]  # fmt: skip
CASES = CASTS + MODED + MOVES


def codes(name):
    """Every value of a narrow type, as its codes."""
    kind = dtype(name)
    return np.resize(np.arange(2**kind.value_bits, dtype=np.uint8), 256).view(kind.numpy)


def around(name):
    """Values of float32 at, between and next to those of a narrow float, in both signs."""
    values = codes(name).astype(np.float32)
    values = np.unique(np.abs(values[np.isfinite(values)])).astype(np.float64)
    exact = np.concatenate([values, (values[1:] + values[:-1]) / 2, values[-1:] * [1.25, 1.5]])
    middle = np.concatenate([exact, [2.0**-149, 2.0**-127, 2.0**-126, 1e-7, 1e6]])
    with np.errstate(over="ignore"):
        middle = middle.astype(np.float32)
    near = [np.nextafter(middle, np.float32(s)) for s in (0, np.inf)]
    special = np.float32([np.inf, np.nan])
    positive = np.concatenate([middle, *near, special])
    return np.concatenate([positive, -positive])


def samples(name, attrs):
    kind = dtype(name)
    if kind.is_narrow:
        return codes(name)
    if kind.kind == "bool":
        return np.array([False, True] * LANES)
    if kind.is_integer:
        edge = np.iinfo(kind.numpy)
        values = [*range(-40, 40), 447, 448, 464, 465, 57344, 61440, 1 << 40, edge.min, edge.max]
        return np.array([v for v in values if edge.min <= v <= edge.max], kind.numpy)
    to = dtype(attrs["to"])
    values = around(to.name) if to.is_float else np.arange(-40, 40, 0.25, np.float32)
    with np.errstate(all="ignore"):
        exact = values.astype(np.float64)
        close = [exact * (1 + s * 2.0**-40) for s in (-1, 1)] if name == "f64" else []
        return np.concatenate([values, [np.inf, np.nan, 1e9, -1e9], *close]).astype(kind.numpy)


def operands(case):
    name, kind, attrs = case
    if name == "bitcast":
        columns = [codes(kind) if dtype(kind).is_narrow else np.arange(256, dtype=np.uint8)]
    else:
        columns = [samples(kind, attrs)]
    columns[0] = np.resize(columns[0], -(-columns[0].size // LANES) * LANES)
    if name == "select":
        columns = [columns[0].view(np.uint8) % 3 == 0, columns[0], columns[0][::-1].copy()]
    return columns


@pytest.fixture(scope="module")
def functions():
    return ArrayFunctions([Request(*c, lanes) for c in CASES for lanes in (1, LANES)], level=1)


def same(a, b):
    """The very bits, but for any NaN and either zero."""
    if not from_numpy(a.dtype).is_float:
        return a.tobytes() == b.tobytes()
    x, y = a.astype(np.float64), b.astype(np.float64)
    return np.array_equal(x, y, equal_nan=True)


@pytest.mark.parametrize("case", CASES, ids=lambda c: Request(*c).symbol)
def test_compiled_code_computes_the_meaning(functions, case):
    name, _, attrs = case
    inputs = operands(case)
    value = functions(Request(*case, LANES), *inputs)
    expected = evaluate(name, *inputs, **attrs)
    assert same(value, expected), [
        (*(c[i] for c in inputs), value[i], expected[i])
        for i in range(value.size)
        if not same(value[i : i + 1], expected[i : i + 1])
    ][:8]
    assert functions(Request(*case, 1), *inputs).tobytes() == value.tobytes()
    if name in ("identity", "select"):
        assert value.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", FLOATS)
def test_codes_mean_what_ml_dtypes_says(functions, name):
    x = codes(name)
    value = functions(Request("cast", name, {"to": "f32"}, LANES), x)
    np.testing.assert_array_equal(value, x.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(value), np.signbit(x.astype(np.float32)))


@pytest.mark.parametrize("name", ["f4e2m1", "i4", "u4", "i2", "u2"])
def test_bits_above_the_value_are_ignored(functions, name):
    x = np.arange(256, dtype=np.uint8)
    low = x & (2 ** dtype(name).value_bits - 1)
    cast = Request("cast", name, {"to": "f32"}, LANES)
    np.testing.assert_array_equal(functions(cast, x), functions(cast, low))


@pytest.mark.parametrize("name", [*FLOAT8, "f4e2m1"])
def test_unsaturated_casts_are_those_of_ml_dtypes(functions, name):
    attrs = {"to": name, "saturate": 0, "round_mode": "up"}
    x = np.resize(around(name), 2048)
    x = np.where(np.isnan(x) & (name == "f4e2m1"), np.float32(0), x)
    value = functions(Request("cast_narrow", "f32", attrs, LANES), x)
    expected = x.astype(dtype(name).numpy)
    np.testing.assert_array_equal(value.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("name", FLOAT8)
def test_casts_saturate_as_onnx_says(name):
    largest = float(ml_dtypes.finfo(dtype(name).numpy).max)
    x = np.float32([0, np.inf, -np.inf, 2 * largest, -2 * largest, np.nan])
    value = evaluate("cast", x, to=name).astype(np.float32)
    np.testing.assert_array_equal(value, [0, largest, -largest, largest, -largest, np.nan])
    loose = evaluate("cast_narrow", x[1:2], to=name, saturate=0).astype(np.float32)
    assert np.isinf(loose[0]) if name == "f8e5m2" else np.isnan(loose[0])


def test_e8m0_rounds_as_onnx_says():
    x = np.float32([0, 1e-40, 2.0**-127, 1, 1.4, 1.5, 3e38, np.inf, np.nan])

    def code(**how):
        return evaluate("cast_narrow", x, to="f8e8m0", **how).view(np.uint8).tolist()

    assert code() == [0, 0, 0, 127, 128, 128, 254, 254, 255]
    assert code(round_mode="down") == [0, 0, 0, 127, 127, 127, 254, 254, 255]
    assert code(round_mode="nearest") == [0, 0, 0, 127, 127, 128, 254, 254, 255]
    assert code(round_mode="nearest", saturate=0) == [255, 255, 0, 127, 127, 128, 255, 255, 255]


def test_narrow_integers_wrap():
    x = np.int32([-9, -8, 7, 8, 15, 200])
    assert evaluate("cast", x, to="i4").astype(int).tolist() == [7, -8, 7, -8, -1, -8]
    unsigned = evaluate("cast", x.astype(np.float32), to="u4")
    assert unsigned.astype(int).tolist() == [7, 8, 7, 8, 15, 8]
    assert evaluate("cast", x, to="i2").astype(int).tolist() == [-1, 0, -1, 0, -1, 0]


def test_narrow_types_only_move_and_convert():
    with pytest.raises(TypeError, match="add does not take"):
        evaluate("add", codes("i4"), codes("i4"))
