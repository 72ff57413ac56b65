"""Every row of the scalar table at every type: compiled code against the numpy meaning."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import llvmlite.binding as llvm
import numpy as np
import pytest

from cuvil.codegen.elf_file import SYMTAB, UNDEFINED, read_object
from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request
from cuvil.ir.dtypes import DTYPES, dtype
from cuvil.ops.scalars import SCALARS, evaluate, scalar

LANES = 4
TURNS = 1e5  # sin, cos and tan are tested up to here
SOME_ATTRS = [
    ("isinf", {"detect_negative": 0}),
    ("isinf", {"detect_positive": 0}),
    ("isinf", {"detect_negative": 0, "detect_positive": 0}),
    ("celu", {"alpha": 0.5}),
    ("leaky_relu", {"alpha": -2.0}),
    ("hardsigmoid", {"alpha": 0.3, "beta": 0.1}),
    ("shrink", {"lambd": 1.5, "bias": 0.5}),
]
CASTS = ("cast", "bitcast", "cast_narrow", "quantize", "fake_quantize")
# The narrow types have a test of their own; strings are no scalars of arithmetic.
WIDE = [row for row in DTYPES if not row.is_narrow and not row.is_string]


def requests(lanes):
    plain = [
        Request(row.name, kind, {}, lanes)
        for row in SCALARS.values()
        for kind in row.dtypes
        if row.name not in CASTS and dtype(kind) in WIDE
    ]
    pairs = [(a, b) for a in WIDE for b in WIDE]
    casts = [Request("cast", a.name, {"to": b.name}, lanes) for a, b in pairs]
    casts += [
        Request("bitcast", a.name, {"of": a.name, "to": b.name}, lanes)
        for a, b in pairs
        if a.size == b.size
    ]
    return plain + casts + [Request(name, "f32", attrs, lanes) for name, attrs in SOME_ATTRS]


CASES = [pytest.param(r, id=r.symbol) for r in requests(LANES)]


@pytest.fixture(scope="module")
def functions():
    """All functions for the lowest common denominator of the architecture, no facts."""
    return ArrayFunctions(requests(1) + requests(LANES), level=1)


def floats(kind):
    info = np.finfo(np.float32 if kind.name != "f64" else np.float64)
    edges = [0, 0.5, 1, 1.5, 2, 2.5, 3, 7, 20, 87.5, 88.8, 104, 300, 709.5, 746, 1e5, 3e9, 1e19,
             1 - 2**-8, 1 + 2**-7, 0.7071, 0.3, 2**-9, 1e-5, info.tiny, info.tiny / 8, info.max,
             info.smallest_subnormal, 2**23 + 1, 65519, 65520, 6e-8, np.inf, np.nan]  # fmt: skip
    with np.errstate(over="ignore", under="ignore"):
        return np.array([s * e for e in edges for s in (1, -1)]).astype(kind.numpy)


def integers(kind):
    info = np.iinfo(kind.numpy)
    values = [0, 1, 2, 3, 5, 7, 8, 31, 63, 64, info.max, info.max - 1, info.min, info.min + 1]
    values += [-1, -2, -3, -8] if info.min else []
    return np.array(values, kind.numpy)


def samples(kind, count, rng):
    """Edge cases, then random values of many magnitudes."""
    if kind.kind == "bool":
        return rng.random(count) < 0.5
    if kind.is_integer:
        info = np.iinfo(kind.numpy)
        drawn = rng.integers(info.min, info.max, count, kind.numpy, endpoint=True)
        return np.concatenate(
            [integers(kind), drawn >> rng.integers(0, kind.bits, count).astype(kind.numpy)]
        )
    drawn = rng.standard_normal(count) * 10.0 ** rng.uniform(-3, 2.5, count)
    return np.concatenate([floats(kind), drawn.astype(kind.numpy)])


def operands(request, count=240):
    """Operands of a function: pairs of all edge cases for two, and random ones."""
    rng = np.random.default_rng(len(request.symbol))
    kinds = scalar(request.name).operand_dtypes(request.dtype)
    columns = [samples(kind, count, rng) for kind in kinds]
    if len(kinds) == 2:
        pairs = np.array(list(product(range(len(columns[0]) - count), repeat=2)), int).reshape(
            -1, 2
        )
        columns = [np.concatenate([c[p], c]) for c, p in zip(columns, pairs.T, strict=True)]
    if request.name in ("sin", "cos", "tan"):
        far = np.abs(columns[0].astype(np.float64)) > TURNS
        columns[0] = np.where(far & np.isfinite(columns[0]), np.ones_like(columns[0]), columns[0])
    size = min(map(len, columns)) // LANES * LANES
    return [np.ascontiguousarray(c[:size]) for c in columns]


def assert_close(request, value, inputs):
    row = scalar(request.name)
    reference = evaluate(request.name, *inputs, **request.attrs)
    if not dtype(row.result_dtype(request.dtype, request.attrs)).is_float:
        np.testing.assert_array_equal(value, reference)
        return
    with np.errstate(all="ignore"):
        wide, expected = value.astype(np.float64), reference.astype(np.float64)
        error = np.abs(wide - expected)
        allowed = row.allowed_error(reference, *inputs)
    good = (wide == expected) | (np.isnan(wide) & np.isnan(expected)) | (error <= allowed)
    bad = np.flatnonzero(~good)[:5]
    assert not bad.size, [(*(x[i] for x in inputs), value[i], reference[i]) for i in bad]


@pytest.mark.parametrize("request_", CASES)
def test_compiled_code_computes_the_meaning(functions, request_):
    inputs = operands(request_)
    value = functions(request_, *inputs)
    assert_close(request_, value, inputs)
    one_by_one = functions(Request(request_.name, request_.dtype, request_.attrs, 1), *inputs)
    assert value.tobytes() == one_by_one.tobytes() or same_but_nan(value, one_by_one)


def same_but_nan(a, b):
    bits = f"u{a.dtype.itemsize}"
    nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return bool(np.all((a.view(bits) == b.view(bits)) | nan))


ODD = (
    *("floor", "ceil", "round", "trunc", "sqrt", "sin", "tan", "asin"),
    *("atan", "sinh", "tanh", "asinh", "erf", "expm1", "log1p"),
)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_zero_keeps_its_sign(functions, name, kind):
    zeros = np.array([0.0, -0.0] * 2, dtype(kind).numpy)
    value = functions(Request(name, kind, {}, LANES), zeros)
    assert np.signbit(value).tolist() == [False, True] * 2


def test_results_stay_in_range(functions):
    x = np.concatenate([np.linspace(-20, 20, 40000), [-np.inf, np.inf] * 2]).astype(np.float32)
    for name, low in (("tanh", -1), ("erf", -1), ("sigmoid", 0)):
        value = functions(Request(name, "f32", {}, LANES), x)
        assert value.min() == low and value.max() == 1, name


def test_sine_far_out_stays_bounded(functions):
    x = np.float32([1e8, 1e12, 1e20, 1e38])
    assert np.abs(functions(Request("sin", "f32", {}, LANES), x)).max() <= 1


def undefined_symbols(compiled):
    data = read_object(compiled.object)
    table = data.find(SYMTAB)
    return [s.name for s in data.symbols(table) if s.section == UNDEFINED and s.name]


def test_objects_import_nothing(functions):
    """Baseline code needs no C library and no compiler run time, whatever the function."""
    assert undefined_symbols(functions) == []


def test_facts_of_this_machine_keep_the_numbers():
    """With instructions for fma, rounding and halves the bounds hold just as well."""
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    facts = SimpleNamespace(fma=True, rounding=True, half=True)
    some = [r for r in requests(LANES) if r.dtype in ("f16", "f32", "f64") and r.name not in CASTS]
    fused = ArrayFunctions(some, facts, cpu, features, level=1)
    if undefined_symbols(fused):
        pytest.skip("this machine lacks one of the instructions")
    for request in some:
        inputs = operands(request)
        assert_close(request, fused(request, *inputs), inputs)
