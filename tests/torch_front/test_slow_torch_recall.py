"""What an earlier process has compiled is found by the graph that torch captures, and only that."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: tools/setup torch")
import torch
from torch import nn

F = nn.functional
X = torch.linspace(-1, 1, 8).reshape(2, 4)
Function = Callable[..., Any]


class Lowered:
    """How often torch has taken a graph apart."""

    count = 0


@pytest.fixture(autouse=True)
def lowered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lowered]:
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path))
    backend = importlib.import_module("cuvil.integrations.torch_compile.backend")
    real, seen = backend.aot_module_simplified, Lowered()

    def counted(*args: Any, **keywords: Any) -> Any:
        seen.count += 1
        return real(*args, **keywords)

    monkeypatch.setattr(backend, "aot_module_simplified", counted)
    torch.manual_seed(0)
    with torch.inference_mode(False), torch.no_grad():
        yield seen


def again(model: Function, *args: Any, **options: Any) -> Any:
    """Compiled as by a new process, and right."""
    torch._dynamo.reset()
    found = torch.compile(model, backend="cuvil", fullgraph=True, options=options)(*args)
    torch.testing.assert_close(found, model(*args), rtol=1e-4, atol=1e-5)
    return found


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()


def test_the_same_graph_is_not_taken_apart_again(lowered: Lowered) -> None:
    model = net()
    again(model, X)
    for x in (X, X + 1):
        again(model, x)
    assert lowered.count == 1


def test_other_weights_are_compiled(lowered: Lowered) -> None:
    first, second = net(), net()
    for model in (first, second, first, second):
        again(model, X)
    assert lowered.count == 2


def test_weights_that_change_after_they_were_found(lowered: Lowered) -> None:
    model = net()
    again(model, X)
    torch._dynamo.reset()
    run = torch.compile(model, backend="cuvil")
    run(X)
    assert lowered.count == 1
    for _ in range(4):
        model.get_parameter("0.weight").mul_(-2)
        torch.testing.assert_close(run(X), model(X), rtol=1e-4, atol=1e-5)
    model.train()
    model(X * 3)
    model.eval()
    torch.testing.assert_close(run(X), model(X), rtol=1e-4, atol=1e-5)


def scaled(factor: float) -> Function:
    return lambda x: F.relu(x * factor)


def with_table(*row: float) -> Function:
    return lambda x: x + torch.tensor(row)


def by_axis(axis: int) -> Function:
    return lambda x: x.softmax(axis)


def in_bfloat16(x: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return (x @ x.T).float()


DIFFERENT: dict[str, list[tuple[Function, tuple[Any, ...]]]] = {
    "numbers": [(scaled(2.0), (X,)), (scaled(3.0), (X,))],
    "axes": [(by_axis(0), (X,)), (by_axis(1), (X,))],
    "tables": [(with_table(1, 2, 3, 4), (X,)), (with_table(4, 3, 2, 1), (X,))],
    "shapes": [(scaled(2.0), (X,)), (scaled(2.0), (X[:1],)), (scaled(2.0), (X[None],))],
    "types": [(scaled(2.0), (X,)), (scaled(2.0), (X.double(),)), (scaled(2.0), (X.int(),))],
    "strides": [(scaled(2.0), (X,)), (scaled(2.0), (X.T.contiguous().T,))],
    "operators": [(lambda x: x.sin() + 1, (X,)), (lambda x: x.cos() + 1, (X,))],
    "orders": [(lambda x, y: x - y, (X, X * 2)), (lambda x, y: y - x, (X, X * 2))],
    "results": [(lambda x: (x + 1, x * 2), (X,)), (lambda x: (x * 2, x + 1), (X,))],
    "one argument twice": [(lambda x, y: x - 2 * y, (X, X + 1)), (lambda x, y: x - 2 * y, (X, X))],
    "autocast": [(lambda x: (x @ x.T).float(), (X,)), (in_bfloat16, (X,))],
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_graphs_that_differ_in(what: str) -> None:
    for _ in range(2):
        for model, args in DIFFERENT[what]:
            torch._dynamo.reset()
            found = torch.compile(model, backend="cuvil", fullgraph=True)(*args)
            near = 1e-2 if what == "autocast" else 1e-5
            wanted = model(*args)
            torch.testing.assert_close(found, wanted, rtol=near, atol=near, check_stride=True)


def test_options_have_engines_of_their_own(lowered: Lowered) -> None:
    model = nn.Linear(64, 64).eval()
    x = torch.randn(8, 64)
    plain = again(model, x)
    torch._dynamo.reset()
    run = torch.compile(model, backend="cuvil", options={"precision": "fp16"})
    assert not torch.equal(run(x), plain)
    assert torch.equal(again(model, x), plain)
    assert lowered.count == 2


def test_what_writes_or_is_symbolic_is_not_remembered(lowered: Lowered) -> None:
    def write(x: Any) -> Any:
        return x.add_(1) * 2

    for _ in range(2):
        torch._dynamo.reset()
        x = X.clone()
        torch.testing.assert_close(torch.compile(write, backend="cuvil")(x), (X + 1) * 2)
        assert torch.equal(x, X + 1)
    for _ in range(2):
        torch._dynamo.reset()
        run = torch.compile(scaled(2.0), backend="cuvil", dynamic=True)
        for rows in (3, 5):
            torch.testing.assert_close(run(torch.ones(rows, 4)), torch.full((rows, 4), 2.0))
    assert lowered.count == 4


def test_an_operator_of_the_users_is_not_remembered(lowered: Lowered) -> None:
    @torch.library.custom_op("recall::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    for _ in range(2):
        torch._dynamo.reset()
        run = torch.compile(lambda x: twice(x) + 1, backend="cuvil")
        torch.testing.assert_close(run(X), X * 2 + 1)
    assert lowered.count == 2


SCRIPT = """
import importlib
import torch
torch.manual_seed(0)
backend = importlib.import_module("cuvil.integrations.torch_compile.backend")
real, seen = backend.aot_module_simplified, []
backend.aot_module_simplified = lambda *a, **k: (seen.append(1), real(*a, **k))[1]
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten()).eval()
x = torch.randn(1, 3, 6, 6)
with torch.inference_mode():
    found = torch.compile(model, backend="cuvil")(x)
    assert torch.allclose(found, model(x), atol=1e-5)
print(len(seen))
"""


def test_another_process_finds_it() -> None:
    def run() -> str:
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True,
            check=True,
        ).stdout.strip()  # fmt: skip

    assert [run(), run()] == ["1", "0"]
