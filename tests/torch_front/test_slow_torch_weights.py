"""Weights that change after compiling: torch.compile follows, what `cuvil.compile` gave says so."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: tools/setup torch")
import torch
from torch import nn

import cuvil

X = torch.linspace(-1, 1, 8).reshape(2, 4)
pytestmark = pytest.mark.usefixtures("fresh")


def net() -> Any:
    inside = nn.Sequential(nn.Linear(4, 4))
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), inside).eval()


def train(model: Any) -> None:
    model.train()(X).sum().backward()
    model.eval()


def step(model: Any) -> None:
    model(X).sum().backward()
    torch.optim.SGD(model.parameters(), 0.1).step()


def add(model: Any) -> None:
    with torch.no_grad():
        model[0].weight.add_(1)


def other_memory(model: Any) -> None:
    """The new memory may lie where the old one did."""
    model[0].weight.data = torch.empty(0)
    model[0].weight.data = torch.ones(4, 4)


def put(place: str, value: Callable[[], Any]) -> Callable[[Any], None]:
    above, _, name = place.rpartition(".")
    return lambda model: setattr(model.get_submodule(above), name, value())


def close(found: Any, wanted: Any) -> None:
    near = 1e-5 if wanted.dtype is torch.float32 else 2e-3  # two ulps of half at 1
    torch.testing.assert_close(found, wanted, rtol=near, atol=near)


CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "in place": (add, "0.weight"),
    "other memory": (other_memory, "0.weight"),
    "a loaded state": (lambda model: model.load_state_dict(net().state_dict()), "0.weight"),
    "an assigned state": (
        lambda model: model.load_state_dict(net().state_dict(), assign=True), "0.weight",
    ),
    "another parameter": (put("0.weight", lambda: nn.Parameter(torch.ones(4, 4))), "0.weight"),
    "no bias": (put("2.0.bias", lambda: None), "2.0.bias"),
    "another layer": (put("2.0", lambda: nn.Linear(4, 4)), "2.0"),
    "another block": (put("2", lambda: nn.Sequential(nn.Linear(4, 4))), "2"),
    "an optimizer": (step, "0.weight"),
    "statistics in training": (train, "1.running_mean"),
    "half": (lambda model: model.half(), "0.weight"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_torch_compile_follows(change: str) -> None:
    model = net()
    run = torch.compile(model, backend="cuvil", fullgraph=True)
    with torch.inference_mode():
        before = run(X)
    CHANGES[change][0](model)
    x = X.half() if change == "half" else X
    with torch.inference_mode():
        found, wanted = run(x), model(x)
    close(found, wanted)
    assert not torch.equal(found, before.to(found.dtype))


@pytest.mark.parametrize("change", CHANGES)
def test_a_compiled_module_says_what_has_changed(change: str) -> None:
    act, name = CHANGES[change]
    model = net()
    run = cuvil.compile(model, input_spec=(X,))
    torch.testing.assert_close(run(X), model(X))
    act(model)
    with pytest.raises(
        cuvil.InputError, match=re.escape(f"weights have changed since it was compiled ('{name}')")
    ):
        run(X)
    x = X.half() if change == "half" else X
    close(cuvil.compile(model, input_spec=(x,))(x), model(x))


@pytest.mark.parametrize(
    "made_of",
    [
        lambda model: lambda x: model(x),
        lambda model: model.forward,
        lambda model: torch.export.export(model, (X,)),
        torch.jit.script,
        lambda model: torch.jit.trace(model, X),
    ],
    ids=["a function", "a method", "a program", "a script", "a trace"],
)
def test_what_weights_can_come_by(made_of: Callable[[Any], Any]) -> None:
    model = net()
    made = made_of(model)
    for act in (add, train):
        run = cuvil.compile(made, input_spec=(X,))
        torch.testing.assert_close(run(X), model(X))
        act(model)
        with pytest.raises(cuvil.InputError, match="have changed since it was compiled"):
            run(X)


def test_tied_weights_have_two_names() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
            self.last.weight = self.first.weight
            self.table = torch.ones(4)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x)) + self.table

    for place in ("last.weight", "table"):
        model = Tied()
        run = cuvil.compile(model, input_spec=(X,))
        put(place, lambda: nn.Parameter(torch.full((4,), 2.0).expand(4, 4)[:4]))(model)
        with pytest.raises(cuvil.InputError, match=f"have changed .*'{place}'"):
            run(X)


def test_what_is_no_weight_may_change() -> None:
    class Counting(nn.Module):
        calls: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.layer, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.layer(x) + self.calls

    model = Counting()
    run = cuvil.compile(model, input_spec=(X,))
    first = run(X)
    model(X)
    step_of_unused = torch.optim.SGD(model.unused.parameters(), 0.1)
    model.unused(X).sum().backward()
    step_of_unused.step()
    torch.testing.assert_close(run(X), first + 1)


def test_neither_module_nor_weights_are_kept() -> None:
    model = net()
    run = cuvil.compile(model, input_spec=(X,))
    wanted = model(X).detach()
    alive = [weakref.ref(x) for x in (model, *model.modules(), *model.parameters())]
    model[2] = nn.Identity()
    del model
    gc.collect()
    assert not any(x() is not None for x in alive)
    torch.testing.assert_close(run(X), wanted)
