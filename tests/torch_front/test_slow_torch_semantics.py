"""torch.compile(m, backend="cuvil") means what eager means: views, writes, layouts, weights."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")

import cuvil  # noqa: E402
from cuvil.integrations.torch_compile.observe import observed  # noqa: E402
from tests.torch_front.torch_calls import compiled, same  # noqa: E402

F = torch.nn.functional
tree_leaves = torch.utils._pytree.tree_leaves
pytestmark = pytest.mark.usefixtures("inference")


def test_writes_to_inputs_reach_the_caller() -> None:
    def step(x: Any, total: Any) -> Any:
        total.add_(x.sum())
        x[:, 1] = 0
        x.mul_(2)
        return x @ x.T

    same(step, torch.randn(3, 3), torch.zeros(()))


def test_views_of_inputs_stay_views() -> None:
    x = torch.randn(4, 6)
    top = compiled(lambda x: x[1:3].t())(x)
    x.zero_()
    assert torch.equal(top, torch.zeros(6, 2))


def test_writes_through_views_are_seen() -> None:
    def model(x: Any) -> Any:
        y = x * 1
        y.view(-1)[::2] += 10
        y.diagonal().zero_()
        return y, y.sum(0)

    same(model, torch.randn(4, 4))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[2:],
        lambda x: x[:, :1].expand(6, 8),
        lambda x: x[:0],
        torch._neg_view,
    ],
    ids=["transposed", "every other", "offset", "repeated", "empty", "negative"],
)
def test_inputs_need_not_be_contiguous(view: Callable[[Any], Any]) -> None:
    same(lambda x: F.relu(x + 1) * 2, view(torch.randn(6, 8)))


def test_channels_last_goes_in_and_comes_out() -> None:
    conv = torch.nn.Conv2d(3, 4, 3, padding=1).to(memory_format=torch.channels_last).eval()
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    found = same(lambda x: F.relu(conv(x)), x)
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_channels_last_of_any_batch() -> None:
    conv = torch.nn.Conv2d(3, 4, 3, padding=1).to(memory_format=torch.channels_last).eval()
    run = compiled(lambda x: F.relu(conv(x)), dynamic=True)
    with observed() as graphs:
        for batch, side in ((2, 8), (3, 6)):
            x = torch.randn(batch, 3, side, side + 1).to(memory_format=torch.channels_last)
            found, wanted = run(x), F.relu(conv(x))
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5, check_stride=True)
    assert len(graphs) == 1


def test_autocast() -> None:
    layer = torch.nn.Linear(32, 16).eval()

    def model(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return F.gelu(layer(x))

    x = torch.randn(4, 32)
    found, wanted = compiled(model)(x), model(x)
    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)


def test_tied_weights_are_one_constant() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(64, 32)
            self.head = torch.nn.Linear(32, 64, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens: Any) -> Any:
            return self.head(self.embed(tokens))

    same(Tied().eval(), torch.randint(0, 64, (2, 5)))


def test_integers_and_bools() -> None:
    def model(x: Any, keep: Any, n: Any) -> Any:
        return torch.where(keep, x // 3, -x) % 5, keep & (x > n), x / n, keep.sum(), x.max(0)

    x = torch.randint(-9, 9, (4, 5))
    same(model, x, torch.rand(4, 5) > 0.5, torch.tensor(2))


def test_outputs_in_dicts_lists_and_none() -> None:
    def model(x: Any) -> Any:
        return {"all": [x + 1, (x.shape[0], None)], "none": None, "same": x, "text": "t"}

    found = compiled(model)(torch.ones(2))
    assert found["all"][1] == (2, None)
    assert found["none"] is None
    assert found["text"] == "t"
    assert torch.equal(found["all"][0], torch.full((2,), 2.0))


def test_dynamic_sizes_compile_once() -> None:
    layer = torch.nn.Linear(8, 4).eval()

    def model(x: Any) -> Any:
        y = layer(x).reshape(x.shape[0], -1)
        return F.softmax(y, -1).sum(0) / x.shape[1], y.shape[0]

    run = compiled(model, dynamic=True)
    with observed() as graphs:
        for rows, columns in ((3, 5), (7, 2), (4, 9)):
            x = torch.randn(rows, columns, 8)
            torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(graphs) == 1


def test_numbers_and_pads_of_any_size() -> None:
    def model(x: Any, eps: float, multiple: int) -> Any:
        y = F.layer_norm(x, x.shape[-1:], eps=eps)
        pads = (0, -x.shape[1] % multiple)
        return F.pad(y, pads), F.pad(y, pads, mode="replicate"), F.pad(y, pads, mode="reflect")

    run = compiled(model, dynamic=True)
    for rows, columns, eps in ((2, 5, 1e-5), (3, 9, 1e-2)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(run(x, eps, 4), model(x, eps, 4), rtol=1e-4, atol=1e-5)
    run = compiled(lambda x, n: x.roll(n) * n, dynamic=True)
    for number in (3, -2, 5):
        torch.testing.assert_close(run(x, number), x.roll(number) * number)


def test_mark_dynamic_with_a_guard() -> None:
    def model(x: Any) -> Any:
        return x[:8].sum(0) if x.shape[0] > 8 else x.sum(0) * 2

    x = torch.randn(12, 3)
    torch._dynamo.mark_dynamic(x, 0)
    run = compiled(model)
    with observed() as graphs:
        for rows in (12, 20, 9):
            y = torch.randn(rows, 3)
            torch.testing.assert_close(run(x if rows == 12 else y), model(x if rows == 12 else y))
        assert len(graphs) == 1
        y = torch.randn(5, 3)
        torch.testing.assert_close(run(y), model(y))


def test_mark_dynamic_with_a_range() -> None:
    x = torch.randn(12, 3)
    torch._dynamo.mark_dynamic(x, 0, min=4, max=64)
    run = compiled(lambda x: F.softmax(x, 0))
    with observed() as graphs:
        for rows in (12, 4, 64):
            y = x if rows == 12 else torch.randn(rows, 3)
            torch.testing.assert_close(run(y), F.softmax(y, 0))
        ((_, call),) = graphs[0].engines
        with pytest.raises(cuvil.ShapeMismatchError, match="is 65"):
            call.engine(np.zeros((65, 3), np.float32))
    assert len(graphs) == 1


def test_changed_weights_give_new_results() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).eval()
    run, x = compiled(model), torch.randn(2, 4)
    for _ in range(2):
        torch.testing.assert_close(run(x), model(x))
        model[0].weight.mul_(3)
        torch.testing.assert_close(run(x), model(x))
        model[1].running_mean.add_(1)
        torch.testing.assert_close(run(x), model(x))
        model.load_state_dict(
            {k: torch.rand_like(v.float()) for k, v in model.state_dict().items()}
        )


def test_replaced_weights_give_new_results() -> None:
    model = torch.nn.Linear(4, 4).eval()
    run, x = compiled(model), torch.randn(2, 4)
    torch.testing.assert_close(run(x), model(x))
    model.weight = torch.nn.Parameter(torch.ones(4, 4))
    torch.testing.assert_close(run(x), model(x))
    model.bias.data = torch.full((4,), 7.0)
    torch.testing.assert_close(run(x), model(x))


def test_modules_of_one_class_have_their_own_weights() -> None:
    first, second = (torch.nn.Linear(4, 4).eval() for _ in range(2))
    run = compiled(lambda layer, x: layer(x))
    x = torch.randn(2, 4)
    for layer in (first, second, first):
        torch.testing.assert_close(run(layer, x), layer(x))


def test_graphs_with_gradients_are_left_alone() -> None:
    layer = torch.nn.Linear(4, 4)
    x = torch.randn(2, 4)
    with torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = torch.compile(layer, backend="cuvil")
        run(x).sum().backward()
        found = layer.weight.grad.clone()
        layer.weight.grad = None
        layer(x).sum().backward()
    torch.testing.assert_close(found, layer.weight.grad)


def test_what_is_not_supported_runs_in_eager() -> None:
    def model(x: Any) -> Any:
        y = F.gelu(x @ x)
        q = torch.linalg.qr(y + torch.eye(4)).Q
        return F.softmax(q @ q.T, -1) + y

    x = torch.randn(4, 4)
    with observed() as graphs:
        found = torch.compile(model, backend="cuvil", fullgraph=True)(x)
    torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
    assert [p.node.name for p in graphs[0].problems] == ["linalg_qr"]


def test_places_in_memory_are_taken_in_eager() -> None:
    def model(x: Any) -> Any:
        y = (x + 1).t()[2:]
        return torch.as_strided(y, (2, 2), (1, 3), 0) * 2

    for x in (torch.randn(4, 3), torch.randn(24)[5:17].view(4, 3)):
        torch._dynamo.reset()
        found = torch.compile(model, backend="cuvil", fullgraph=True)(x)
        torch.testing.assert_close(found, model(x))
        part = torch.compile(lambda x: torch.as_strided(x, (2, 2), (1, 3), 6), backend="cuvil")
        assert torch.equal(part(x), torch.as_strided(x, (2, 2), (1, 3), 6))


def test_fallback_can_be_an_error_that_names_the_line() -> None:
    def model(x: Any) -> Any:
        return torch.linalg.qr(x).Q  # here

    with pytest.raises(cuvil.UnsupportedError, match=r"linalg_qr.* at .*semantics.py:\d+ in model"):
        compiled(model)(torch.randn(3, 3))


def test_results_live_on_and_are_new_at_every_call() -> None:
    run = compiled(lambda x: (x * 2, x[:, 0].sum(), (x > 0).sum(1).to(torch.int32)))
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    first, again = run(x), run(x)
    del run
    first[0].add_(1)
    assert torch.equal(again[0], x * 2)
    assert again[1].item() == 4
    assert again[2].tolist() == [1, 2]


def test_sizes_that_a_run_finds() -> None:
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    try:
        run = compiled(lambda x: (x.nonzero(), x + 1))
        for x in (torch.tensor([[0, 1, 2], [0, 0, 3]]), torch.zeros(2, 3)):
            found, more = run(x)
            assert found.tolist() == x.nonzero().tolist()
            assert torch.equal(more, x + 1)
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(Exception, match="no option 'speed'; there are fallback, precision"):
        compiled(lambda x: x + 1, speed=3)(torch.ones(2))


def test_explain_says_which_line_and_why() -> None:
    def model(x: Any) -> Any:
        return torch.linalg.qr(x + 1).Q * 2

    report = cuvil.explain(model, torch.randn(3, 3))
    assert not report.native
    assert "linalg_qr" in str(report)
    assert re.search(r"semantics.py:\d+ in model: the operator is not supported", str(report))
    assert cuvil.explain(torch.nn.Linear(2, 2), torch.ones(1, 2)).native


def test_the_graph_can_be_inspected() -> None:
    with observed() as graphs:
        compiled(lambda x: F.relu(x) + 1)(torch.ones(2))
    assert "aten.relu.default" in [str(n.target) for n in graphs[0].module.graph.nodes]
    assert isinstance(graphs[0].origin, torch.fx.GraphModule)


def test_a_buffer_that_the_model_writes_is_no_constant() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("past", torch.zeros(8, 4))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x: Any) -> Any:
            self.past[self.count[None]] = x
            self.count += 1
            return self.past.sum(0)

    first, second = Counter(), Counter()
    run = compiled(first)
    with observed() as graphs:
        for _ in range(4):
            x = torch.randn(4)
            torch.testing.assert_close(run(x), second(x))
    torch.testing.assert_close(first.past, second.past)
    assert len(graphs[0].engines) == 1


def test_weights_that_keep_changing_become_inputs() -> None:
    layer, x = torch.nn.Linear(4, 4).eval(), torch.randn(2, 4)
    run = compiled(layer)
    with observed() as graphs:
        for _ in range(5):
            torch.testing.assert_close(run(x), layer(x))
            layer.weight.mul_(1.5)
    assert 0 in graphs[0].written
    assert len(graphs[0].engines) == 1


@pytest.mark.parametrize("norm_first", [False, True])
def test_torchs_own_transformer_layer(norm_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(
        16, 2, 32, batch_first=True, norm_first=norm_first
    ).eval()
    same(layer, torch.randn(2, 5, 16))
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    torch._dynamo.reset()
    run, x = compiled(layer), torch.randn(2, 5, 16)
    found, wanted = (f(x, src_key_padding_mask=mask) for f in (run, layer))
    torch.testing.assert_close(found[0], wanted[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[1, :3], wanted[1, :3], rtol=1e-4, atol=1e-5)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "split heads": lambda x: x.reshape(-1, 12).view(*x.shape[:2], 3, 4).transpose(1, 2),
    "slice": lambda x: x[1:, :2].transpose(0, 1),
    "of a result": lambda x: (lambda y: (y, y.transpose(0, 1), y[1:].reshape(-1)))(x + 1),
    "itself": lambda x: (x, x.view(-1), x.sum()),
    "after a write": lambda x: (x.mul_(2), x.transpose(0, 1)),
    "parts": lambda x: (*x.split(4, -1), *x.unbind(-1)[:2]),
    "strides of results": lambda x: (x.permute(2, 0, 1) + 1, x.permute(2, 0, 1).contiguous()),
}


def shares(x: Any, y: Any) -> bool:
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_symbolic_sizes(name: str) -> None:
    model = VIEWS[name]
    run = compiled(model, dynamic=True)
    for rows, columns in ((2, 5), (7, 3)):
        base = torch.randn(rows * columns * 12 + 1)
        x, twin = (b[1:].view(rows, columns, 12) for b in (base, base.clone()))
        got, wanted = run(x), model(twin)
        torch.testing.assert_close(got, wanted, check_stride=True)
        for one, other in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
            shared = one.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            assert shared == (
                other.untyped_storage().data_ptr() == twin.untyped_storage().data_ptr()
            )
