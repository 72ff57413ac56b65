"""Tensors of torch in compiled functions: as in the interpreter, and in the caller's memory."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import cuvil

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")


def same(a: Any, b: Any) -> bool:
    """Of one type, all the way down, and equal."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        kind = type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        return kind and torch.allclose(a.double(), b.double(), rtol=1e-6, equal_nan=True)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(np.array_equal(a, b, equal_nan=isinstance(a, np.ndarray)))


def check(function: Any, *calls: tuple[Any, ...], native: bool = True) -> None:
    """The function compiled does what it does in the interpreter, for each tuple of arguments."""
    for args in calls:
        jitted = cuvil.jit(function)
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        found, expected = jitted(*ours), function(*theirs)
        assert same(found, expected), f"{found} instead of {expected}"
        assert same(ours, theirs), f"the arguments: {ours} instead of {theirs}"
        explanation = cuvil.explain(jitted)
        assert explanation.native == native, str(explanation)


FLOATS = torch.tensor([[0.5, -1.5, 2.25], [3.0, 4.0, -0.125]])
INTS = torch.tensor([[1, -2, 3], [4, 5, 60]])
ALL = [FLOATS, FLOATS.double(), INTS, INTS.to(torch.int32), INTS.to(torch.uint8), FLOATS.T]


def test_sums_of_elements():
    def total(x):
        found = 0
        for i in range(x.shape[0]):
            for j in range(x.size(1)):
                found += x[i, j] * 2 + x[i, j]
        return found

    check(total, *((x,) for x in ALL))


def test_numbers_by_torch_rules():
    def numbers(x, y):
        a, b = x[0, 1], y[1, 0]
        return (a + b, a - 1, a * 0.1, a / 3, b < a, a == b, 7 - a, abs(a), -a,
                a.item(), float(a) + 1, [x[0, 0], x[1, 1]])  # fmt: skip

    check(numbers, *((x, y) for x in ALL for y in (FLOATS, INTS, FLOATS.double())
                     if x.dtype != torch.uint8))  # fmt: skip


def test_truth_indices_and_formats():
    def mixed(x, n):
        names = ["a", "b", "c", "d", "e"]
        found = f"{x[0, 0]:.2f} {x[1, 2]} {names[n[0]]}"
        if x[0, 0] > 0 and not x[0, 1] > 0:
            found += "!"
        return found, x[n[1], n[0]].item(), len(x), x.numel(), isinstance(x, torch.Tensor)

    def best(x):
        top = x[0, 0]
        for row in x:
            for value in row:
                top = max(top, value)
        return top

    check(mixed, (FLOATS, torch.tensor([1, 0])))
    check(best, (FLOATS,), (INTS,))


def test_writing_to_tensors():
    def scale(x, factor):
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            row = x[i]
            for j in range(len(row)):
                out[i, j] = row[j] * factor
                x[i, j] += 1
        return out

    def new(n):
        a, b = torch.zeros(n, 2), torch.ones((n,), dtype=torch.int64)
        a[0, 0], b[0] = 5, 7
        return a, b, torch.zeros(2, dtype=torch.bool)

    check(scale, (FLOATS, 2.0), (FLOATS.double(), 0.5), (INTS, 3))
    check(new, (3,))


def test_results_share_memory():
    @cuvil.jit
    def parts(x):
        return x, x[1], x[:, 1:], x.numpy()

    x = FLOATS.clone()
    whole, row, columns, array = parts(x)
    assert cuvil.explain(parts).native and whole is x
    x[1, 1] = 9
    assert row[1] == 9 and columns[1, 0] == 9 and array[1, 1] == 9 and row._is_view()


def test_numpy_between():
    def softmax(logits):
        x = logits.numpy()
        shifted = np.exp(x - x.max())
        return torch.from_numpy(shifted / shifted.sum())

    check(softmax, (FLOATS[0],))


def test_torch_counts_what_is_written():
    @cuvil.jit
    def fill(x, n):
        x[0] = 1.0
        return x[n]

    x = torch.zeros(3)
    version = x._version
    fill(x, 0)
    assert x._version == version + 1 and x[0] == 1
    with pytest.raises(IndexError):
        fill(x, 5)
    assert x._version == version + 2
    with torch.inference_mode():
        assert fill(torch.zeros(3), 0) == 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: torch.zeros(3, requires_grad=True), "pass tensor.detach()"),
        (lambda: torch.tensor(1.0), "rank 0"),
        (lambda: torch.zeros(3, dtype=torch.bfloat16), "torch.bfloat16"),
        (lambda: torch.zeros(3).to("meta"), "on meta"),
        (lambda: torch.zeros(3, 3).to_sparse(), "sparse"),
        (lambda: torch.nn.Parameter(torch.zeros(3)), "Parameter"),
    ],
)
def test_other_tensors_are_torchs(make: Any, reason: str) -> None:
    @cuvil.jit
    def first(x):
        return x[0] if x.ndim and x.layout == torch.strided else x

    value = make()
    first(value)
    assert reason in str(cuvil.explain(first, value))


def test_elements_that_would_change_under_their_names():
    def swap(x):
        first = x[0]
        x[0] = x[1]
        x[1] = first
        return x

    def alias(x):
        total = x[0] * 1
        other = total
        total += 1
        return other

    for function in (swap, alias):
        check(function, (torch.tensor([1.0, 2.0]),), native=False)
    assert "use .item()" in str(cuvil.explain(cuvil.jit(swap), torch.zeros(2)))


def test_values_that_torch_refuses():
    def store(x, value):
        x[0] = value

    for x, value in ((torch.zeros(1), 1e300), (torch.zeros(1, dtype=torch.uint8), 300)):
        with pytest.raises((RuntimeError, OverflowError)):
            cuvil.jit(store)(x, value)


def test_large_integers():
    def add(x):
        return x[0] + 9007199254740993, x[0] * 1.5

    check(add, (torch.tensor([1]),))


def test_other_functions_and_globals():
    def helper(row):
        return row[0] * WEIGHTS[0]

    def outer(x):
        return [helper(x[i]) for i in range(2)]

    check(outer, (FLOATS,))


WEIGHTS = torch.tensor([2.0, 3.0])


def test_a_bool_is_a_mask_and_no_index():
    def masked(x, n):
        return x[n > 0].shape

    check(masked, (torch.zeros(3), 1), native=False)


def test_torch_is_not_imported(tmp_path: Path):
    code = (
        "import sys, cuvil\n@cuvil.jit\ndef f(x): return x + 1\nf(1)\n"
        "print(cuvil.explain(f).native, 'torch' in sys.modules)"
    )
    (tmp_path / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True False"


def test_engines_inside():
    text = """<ir_version: 8, opset_import: ["" : 18]>
      net (float[N] x) => (float[N] y) { two = Constant<value_float = 2.0>() y = Mul(x, two) }"""
    engine = cuvil.compile(onnx.parser.parse_model(text))
    module = cuvil.compile(torch.nn.Linear(3, 2).eval(), input_spec=(torch.zeros(2, 3),))

    def by_engine(x):
        y, z = engine(x.numpy()), engine(x)
        return y[0] + y[1], z[0] + z[1]

    def by_module(x):
        y = module(x)
        return y[0, 0] * 2

    check(by_engine, (FLOATS[0],))
    check(by_module, (FLOATS,), native=False)
