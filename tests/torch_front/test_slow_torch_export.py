"""`cuvil.compile` of torch modules, functions and exported programs, in their own structures."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch.export", reason="needs torch: tools/setup torch")
import torch

import cuvil
from cuvil.cli.input_spec import parse_input_spec
from tests.torch_front.torch_models import Branching, Counting, Dense, Grouping, Mixing

Dim = torch.export.Dim
X = torch.linspace(-1, 1, 24).reshape(3, 8)


def compiled(model: Any, spec: Any, **options: Any) -> Any:
    return cuvil.compile(model, input_spec=spec, cache=False, **options)


@pytest.mark.parametrize(
    "spec",
    [(X,), X, {"x": X}, [("x", "float32", (3, 8))], [("x", torch.float32, ("n", 8))]],
)
def test_a_module_with_examples_or_rows(spec: Any) -> None:
    model = Dense()
    engine = compiled(model, spec)
    torch.testing.assert_close(engine(X), model(X))
    torch.testing.assert_close(engine(x=X), model(X))
    assert model.training and engine.get_inputs()[0].dims in ((3, 8), ("n", 8))


def test_structures_defaults_buffers_and_numbers() -> None:
    model, twin = Counting(), Counting()
    engine = compiled(model, (torch.zeros(2, 16),), dynamic_shapes={"x": {0: "n", 1: "w"},
                      "w": "8..64:8"})  # fmt: skip
    for rows in (1, 4):
        x = torch.randn(rows, 24)
        got, expected = engine(x), twin(x)
        torch.testing.assert_close(got["y"], expected["y"])
        assert got["extents"] == expected["extents"] == [2, 3] and got["mask"] is None
    engine.reset_states()
    torch.testing.assert_close(engine(X)["y"], X.reshape(3, 1, 8) * 2 + 1)
    with pytest.raises(cuvil.InputError, match="another structure"):
        engine(X, scale=3)
    with pytest.raises(cuvil.ShapeMismatchError, match=r"'x': dim 1 \(w\) is 72"):
        engine(torch.zeros(1, 72))
    with pytest.raises(cuvil.ShapeMismatchError, match=r"w must be a multiple of 8 .*w = 12"):
        engine(torch.zeros(1, 12))


def test_an_argument_that_is_a_number_is_fixed() -> None:
    def scaled(x: torch.Tensor, k: float, out: torch.Tensor) -> torch.Tensor:
        out.copy_(x * k)
        return out + 1

    engine = compiled(scaled, (X, 2.0, torch.zeros(3, 8)))
    out = torch.zeros(3, 8)
    torch.testing.assert_close(engine(X, 2.0, out), X * 2 + 1)
    torch.testing.assert_close(out, X * 2)
    with pytest.raises(cuvil.InputError, match=r"is 3.0, compiled for 2.0"):
        engine(X, 3.0, out)


@pytest.mark.parametrize(
    ("model", "sizes", "dynamic", "message"),
    [
        (Mixing(), (8, 100), {"x": {1: "seq"}, "seq": "8..512"},
         r"torch_models.py:\d+ in forward .*needs .*dynamic_shapes promises seq = 8..512"),
        (Branching(), (132,), {"x": {1: Dim("seq", min=128, max=512)}},
         r"torch_models.py:\d+ in forward needs seq <= 300; .* = Dim\('seq', min=128, max=300\)"),
        (Grouping(), (136,), {"x": {1: "128..512"}},
         r"torch_models.py:\d+ in forward \(aten.view.default\) needs"),
    ],
)  # fmt: skip
def test_the_line_that_breaks_a_promise_is_named(
    model: torch.nn.Module, sizes: Any, dynamic: Any, message: str
) -> None:
    with pytest.raises(cuvil.ShapeMismatchError, match=message):
        compiled(model, tuple(torch.zeros(1, n) for n in sizes), dynamic_shapes=dynamic)


def test_what_a_model_keeps_is_compiled_once_for_all() -> None:
    engine = compiled(Grouping(), torch.zeros(1, 8), dynamic_shapes={"x": {0: "n", 1: "8..64:8"}},
                      specialize={"n": [1, 4]})  # fmt: skip
    for rows, width in ((1, 8), (4, 64), (5, 32)):
        x = torch.randn(rows, width)
        torch.testing.assert_close(engine(x), Grouping()(x))
    _, launches = engine.profile({"x": torch.zeros(4, 64).numpy()})
    assert launches[0].kernel.startswith("n4_")


def test_programs_graph_modules_and_functions(tmp_path: Path) -> None:
    model = Dense().eval()
    program = torch.export.export(model, (X,), dynamic_shapes={"x": {0: Dim("rows")}})
    torch.export.save(program, tmp_path / "dense.pt2")
    for one in (program, str(tmp_path / "dense.pt2")):
        engine = compiled(one, None)
        assert engine.get_inputs()[0].dims == ("x_0", 8)
        torch.testing.assert_close(engine(X[:1]), model(X[:1]))
    torch.testing.assert_close(compiled(torch.fx.symbolic_trace(model), X)(X), model(X))
    pair = compiled(lambda a, b: {"sum": a + b, "both": (a, b)}, (X, X))
    assert torch.equal(pair(X, X)["sum"], 2 * X) and torch.equal(pair(X, X)["both"][0], X)


def test_decorators_with_and_without_arguments() -> None:
    @cuvil.compile
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @cuvil.compile(cache=False, opt_level=1)
    def triple(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @cuvil.compile(input_spec=[("x", "float32", ("n", 8))], cache=False)
    def first(x: torch.Tensor) -> torch.Tensor:
        return x[0]

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        @cuvil.compile(cache=False)
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Two columns."""
            return self.layer(x)

    net = Net()
    assert torch.equal(double(X), 2 * X) and torch.equal(triple(X), 3 * X)
    assert torch.equal(first(X), X[0]) and double.__name__ == "double"
    torch.testing.assert_close(net(X), net.layer(X))
    torch.testing.assert_close(cuvil.compile(Dense(), cache=False)(X), Dense()(X))


IMAGE = torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8).to(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("model", "args", "keywords"),
    [
        (lambda d: d["a"][0] + d["b"], ({"a": [X], "b": X},), {}),
        (lambda *a: a[0] - a[1], (X, X + 1), {}),
        (lambda **a: a["p"] @ a["q"], (), {"p": X, "q": X.t()}),
        (lambda a, b: (a * 2, 3, None, torch.ones(2)), (X, X), {}),
        (torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last), (IMAGE,), {}),
        (torch.nn.Dropout(), (X,), {}),
        (lambda x: torch.nonzero(x > 0), (X,), {}),
        (lambda x: x.sum().to(torch.bfloat16), (X,), {}),
    ],
)
def test_forms_of_arguments_and_results(model: Any, args: Any, keywords: Any) -> None:
    engine = compiled(model, keywords or args)
    reference = model.eval() if isinstance(model, torch.nn.Module) else model
    got, wanted = engine(*args, **keywords), reference(*args, **keywords)
    torch.testing.assert_close(got, wanted)


def test_what_cannot_be_compiled_is_said() -> None:
    with pytest.raises(cuvil.UnsupportedError, match=r"torch.export failed"):
        compiled(lambda x: x + 1 if x.sum() > 0 else x, X)
    with pytest.raises(cuvil.OptionError, match="give input_spec"):
        cuvil.compile(Dense(), dynamic_shapes={"x": {0: "n"}})
    with pytest.raises(cuvil.InputError, match="do not fit"):
        compiled(Dense(), (X, X))
    with pytest.raises(cuvil.OptionError, match="no axis is called 'm'"):
        compiled(Dense(), X, dynamic_shapes={"x": {0: "n"}, "m": "1..2"})


def test_the_words_of_an_input_spec() -> None:
    assert parse_input_spec(["x=float32[1,seq,?]"]) == [("x", "float32", (1, "seq", None))]
    assert parse_input_spec(None) is None
    tensor, rate = parse_input_spec(["x=float32[1,512]", "sr=16000"])
    assert tensor.shape == (1, 512) and rate == 16000
    for word in ("x", "x=float32[-1]", "x=[1]"):
        with pytest.raises(cuvil.OptionError, match="--input-spec"):
            parse_input_spec([word])


class Scaling(torch.nn.Module):
    """forward is compiled for rows that a call decides."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    @cuvil.compile(
        input_spec=[("x", "float32", ("n", 8))], dynamic_shapes={"n": "1..4"}, cache=False
    )
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Two columns."""
        return self.layer(x)


def test_a_decorated_forward_with_a_spec() -> None:
    first, second = Scaling(), Scaling()
    for net in (first, second, first):
        torch.testing.assert_close(net(X), net.layer(X))
        torch.testing.assert_close(net(X[:1]), net.layer(X[:1]))
    made = Scaling.forward.of(first)
    assert made is Scaling.forward.of(first) and Scaling.forward.__doc__ == "Two columns."
    with torch.no_grad():
        first.layer.weight.mul_(2)
    torch.testing.assert_close(first(X), first.layer(X))
    assert Scaling.forward.of(first) is not made
    with pytest.raises(cuvil.ShapeMismatchError, match=r"'x': dim 0 \(n\) is 5"):
        first(torch.zeros(5, 8))


def test_the_weights_of_a_compiled_module_can_be_released() -> None:
    model = Dense()
    weight = weakref.ref(model.layer.weight)
    engine = compiled(model, X)
    wanted = model(X).detach()
    del model
    gc.collect()
    assert weight() is None
    torch.testing.assert_close(engine(X), wanted)


def test_code_for_batches_shares_weights(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()).eval()
    spec = [("input", "float32", ("rows", 512))]
    sizes = []
    for name, batch in (("plain", None), ("special", [1, 4, 8, 16])):
        compiler = cuvil.Compiler.load(model, input_spec=spec)
        compiler.optimize(cpu="x86-64", batch=batch)
        made = compiler.compile(output_path=tmp_path / name / "libnet.so")
        assert made.manifest["weights_bytes"] < 1.1 * 513 * 512 * 4
        sizes.append(made.files["so"].stat().st_size)
    assert 0 < sizes[1] - sizes[0] < 512 * 512
    engine = cuvil.load(tmp_path / "special")
    for rows in (1, 4, 5, 16, 17):
        x = torch.randn(rows, 512)
        got = torch.from_numpy(engine(x.numpy()))
        torch.testing.assert_close(got, model(x), rtol=1e-4, atol=1e-4)
