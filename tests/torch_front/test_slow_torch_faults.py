"""Public faults of inference engines, by the door of torch: rows of tests/faults/rows.toml."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")

import cuvil  # noqa: E402
from tests.torch_front.torch_calls import compiled, same  # noqa: E402

F = torch.nn.functional
NAN, INF = math.nan, math.inf
pytestmark = pytest.mark.usefixtures("inference")


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (1, 3), (9, 2)])
def test_b02_cubic_images(size: tuple[int, int], corners: bool) -> None:
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    found = same(lambda x: F.interpolate(x, size=size, mode="bicubic", align_corners=corners), x)
    if size == (1, 1):
        assert found.item() == pytest.approx(0 if corners else 7.5)


@pytest.mark.parametrize("pads", [True, False], ids=["pads count", "pads do not"])
def test_b04_means_of_windows_at_the_edge(pads: bool) -> None:
    x = torch.arange(1.0, 17.0).reshape(1, 1, 4, 4)
    pool = torch.nn.AvgPool2d(3, 2, padding=1, ceil_mode=True, count_include_pad=pads)
    found = same(pool, x)
    if pads:
        right = torch.tensor([[14 / 9, 10 / 3, 2], [19 / 3, 11, 6], [4.5, 7.5, 4]])
        torch.testing.assert_close(found[0, 0], right)
    same(torch.nn.AvgPool1d(2, 3, padding=1, ceil_mode=True, count_include_pad=pads), x[0])


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_b07_b08_pads_of_every_mode(mode: str) -> None:
    same(lambda x: F.pad(x, (3, 3), mode=mode), torch.arange(8.0).reshape(1, 2, 4))
    same(lambda x: F.pad(x, (-4, 4)), torch.arange(5.0))


def test_b09_norms_far_from_zero() -> None:
    x = torch.tensor([[40000.0, 40001, 40002, 40003]])
    found = same(lambda x: F.layer_norm(x, (4,)), x)
    right = torch.tensor([[-1.34164, -0.44721, 0.44721, 1.34164]])
    torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-5)
    norm = compiled(lambda x: F.instance_norm(x[None]))  # torch's own is off by 6e-4
    torch.testing.assert_close(norm(x)[0], right, rtol=1e-4, atol=1e-5)


def test_b12_negative_indices_and_indices_outside() -> None:
    x, index = torch.arange(12.0).reshape(3, 4), torch.tensor([0, -1])
    same(lambda x, i: (x[i], x[:, i], x[i, i], x.take(i), x.index_put((i,), x[:2])), x, index)
    pick = compiled(lambda x, i: x[i])
    for bad in ([0, 3], [-4, 1]):
        with pytest.raises((IndexError, RuntimeError, cuvil.Error)):
            pick(x, torch.tensor(bad))
    assert torch.equal(pick(x, index), x[index])


@pytest.mark.parametrize("largest", [True, False])
def test_b13_nan_in_top_k(largest: bool) -> None:
    x = torch.tensor([1, NAN, 5, 2, -INF, 4, INF])
    same(lambda x: (x.topk(3, largest=largest), x.sort(descending=largest), x.topk(0)), x)


@pytest.mark.parametrize("kind", [torch.int32, torch.float32, torch.int8])
def test_b24_where_the_least_is(kind: Any) -> None:
    for length in (1, 15, 16, 17, 70):
        x = torch.zeros(length, 3, dtype=kind)
        x[length // 3] = -1
        x[length // 2, 1] = 1
        same(lambda x: (x.argmin(0), x.argmax(0), x.argmin(), x.argmax(1), x.min(0)[0]), x,
             dynamic=False)  # fmt: skip


def test_b27_a_convolution_that_has_another_user() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3)
            self.norm.running_mean.normal_()
            self.norm.running_var.zero_()

        def forward(self, x: Any, z: Any) -> Any:
            found = self.conv(x)
            return self.norm(found), found, self.conv(z), self.norm(self.conv(z).relu())

    same(Twice().eval(), torch.randn(1, 2, 6, 6), torch.randn(1, 2, 5, 5))


def test_b22_nan_survives() -> None:
    def model(x: Any) -> Any:
        return (
            x.clamp(-1, 1), torch.clamp(x, min=2, max=1), F.relu(x), torch.maximum(x, x[0]),
            x.amax(), x.argmax(), F.max_pool1d(x[None], 2), torch.fmax(x, -x.flip(0)), x.sort()[0],
        )  # fmt: skip

    for length in (1, 5, 17):
        for place in {0, length // 2, length - 1}:
            x = torch.linspace(-3, 3, max(length, 2))
            x[place] = NAN
            same(model, x, dynamic=False)


def test_b23_what_ieee_says_is_not_simplified_away() -> None:
    x = torch.tensor([1.0, INF, NAN, -0.0])
    same(lambda x: (x * 0, x - x, 0 / x, (x * 0).isnan(), torch.where(x > 0, x, 0.0)), x)


def test_b26_tensors_without_elements() -> None:
    def reduced(x: Any) -> Any:
        return x.sum(1), x.prod(1), torch.cat([x, x + 1]), F.softmax(x, 0)

    for model, *args in (
        (torch.nn.Linear(8, 3), torch.ones(1, 0, 8)),
        (torch.matmul, torch.ones(2, 0), torch.ones(0, 3)),
        (reduced, torch.ones(2, 0)),
        (torch.nn.Conv2d(3, 4, 3).eval(), torch.ones(0, 3, 8, 8)),
        (lambda x, k: x[k], torch.ones(3, 2), torch.zeros(0, dtype=torch.int64)),
    ):
        same(model, *args, check_stride=False)


@pytest.mark.parametrize("kind", [torch.bool, torch.float32], ids=str)
def test_b29_a_query_that_sees_no_key_gives_zeros(kind: Any) -> None:
    def model(q: Any, mask: Any) -> Any:
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask).transpose(1, 2)

    seen = torch.tensor([[True, True], [False, False]])
    mask = seen if kind is torch.bool else torch.where(seen, 0.0, -INF)
    found = same(model, torch.ones(1, 2, 2, 4), mask)
    assert torch.equal(found[0, 1], torch.zeros(2, 4))


def test_b29_a_masked_row_of_attention_in_parts_is_nan() -> None:
    def model(q: Any, mask: Any) -> Any:
        return F.softmax(q @ q.transpose(-1, -2) + mask, -1) @ q

    mask = torch.tensor([[0.0, 0.0], [-INF, -INF]])
    found = same(model, torch.ones(1, 2, 2, 4), mask)
    assert found[:, :, 1].isnan().all() and not found[:, :, 0].isnan().any()


def test_b37_heads_are_split_by_sizes_of_the_call() -> None:
    def model(x: Any, rows: Any) -> Any:
        y = x.reshape(-1, 12).view(x.shape[0], x.shape[1], 3, 4).transpose(1, 2)
        return y, torch.cat([x, x * 2], 1)[:, rows]

    run = compiled(model, dynamic=True)
    for batch, length in ((2, 5), (7, 3), (3, 128)):
        x, rows = torch.randn(batch, length, 12), torch.arange(2 * length).flip(0)
        torch.testing.assert_close(run(x, rows), model(x, rows))


class Cache(torch.nn.Module):
    """Writes its input to a place of a buffer, and gives the buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2))

    def forward(self, x: Any, place: Any) -> Any:
        self.cache[place] = x
        return self.cache.clone()


def test_b41_a_buffer_that_was_replaced() -> None:
    model = Cache()
    run = compiled(model)
    first = run(torch.tensor([3.0]), torch.tensor([0]))
    assert torch.equal(first, torch.tensor([3.0, 0.0]))
    model.cache = torch.zeros(2)
    second = run(torch.tensor([1.0]), torch.tensor([1]))
    assert torch.equal(second, torch.tensor([0.0, 1.0]))
    assert torch.equal(model.cache, second)


def doubled(x: Any, y: Any) -> Any:
    x.mul_(2)
    return x + y


def test_b41_arguments_that_share_memory() -> None:
    run = compiled(doubled)
    run(torch.ones(4), torch.ones(4))
    base = torch.ones(8)
    found = run(base[:4], base[2:6])
    assert torch.equal(found, torch.tensor([4.0, 4.0, 3.0, 3.0]))
    assert torch.equal(base, torch.tensor([2.0] * 4 + [1.0] * 4))


def test_b41_a_compiled_program_says_that_arguments_share_memory() -> None:
    engine = cuvil.compile(doubled, input_spec=(torch.ones(4), torch.ones(4)), cache=False)
    x = torch.ones(4)
    assert torch.equal(engine(x, torch.ones(4)), torch.full((4,), 3.0)) and x[0] == 2
    base = torch.ones(8)
    with pytest.raises(cuvil.InputError, match="'x' is written to and shares memory with 'y'"):
        engine(base[:4], base[2:6])
    engine(base[:4], base[4:])


class Answers(torch.nn.Module):
    """Results of every kind; a weight that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(256, 256, bias=False)
        self.second = torch.nn.Linear(256, 256)
        self.second.weight = self.first.weight

    def forward(self, x1: Any, x2: Any, flag: bool = True) -> Any:
        y = self.second(self.first(x1).relu())
        twice = y + 1 if flag else y
        pair = (twice, (None, x1.shape[0]))
        return {"b": pair, "a": x2, "twice": twice, "sum": x2.sum(), "none": None}


def test_b43_keywords_in_any_order_and_results_of_every_kind(tmp_path: Path) -> None:
    model = Answers().eval()
    x1, x2 = torch.randn(2, 256), torch.randn(3)
    program = torch.export.export(model, (x1,), {"flag": True, "x2": x2})
    wanted = model(x1, x2=x2)
    for run in (compiled(model), cuvil.compile(program, cache=False)):
        found = run(x1, flag=True, x2=x2)
        assert list(found) == list(wanted)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    compiler = cuvil.Compiler.load(program)
    made = compiler.compile(output_path=tmp_path / "libanswers.so")
    assert made.manifest["weights_bytes"] < 1.5 * 256 * 256 * 4


def test_b45_one_model_from_many_threads() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    fast = compiled(layer.eval())
    inputs = [torch.randn(3, 8) for _ in range(8)]
    fast(inputs[0])

    def work(x: Any) -> bool:
        with torch.no_grad():
            wanted = layer(x)
            return all(torch.allclose(fast(x), wanted, atol=1e-5) for _ in range(100))

    with ThreadPoolExecutor(len(inputs)) as pool:
        assert all(pool.map(work, inputs))


@pytest.mark.parametrize("start", [1, 2, 3])
def test_b50_tensors_in_the_middle_of_others(start: int) -> None:
    run = compiled(lambda x, y: (x * 2 + y, x.sum()))
    base, other = np.arange(40, dtype=np.float32), torch.arange(40, dtype=torch.float32)
    x, y = torch.from_numpy(base[start : start + 33]), other[start : start + 33]
    torch.testing.assert_close(run(x, y), (x * 2 + y, x.sum()))


def test_b59_models_that_differ_only_in_values_or_bias(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path))
    x = torch.randn(2, 4)
    for bias in (True, False):
        for _ in range(2):
            layer = torch.nn.Linear(4, 3, bias=bias).eval()
            torch.testing.assert_close(compiled(layer)(x), layer(x))
    for factor in (2.0, 3.0):
        table = torch.tensor([factor, 1.0, 1.0, 1.0])
        torch.testing.assert_close(compiled(lambda x, t=table: x * t)(x), x * table)


def test_b61_steps_with_a_static_cache_are_the_whole() -> None:
    def attend(q: Any, k: Any, v: Any, place: Any, keys: Any, values: Any) -> Any:
        keys[:, place], values[:, place] = k, v
        seen = torch.arange(keys.shape[1])[None] <= place[:, None]
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)

    q, k, v = (torch.randn(2, 6, 8) for _ in range(3))
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    run = compiled(attend)
    keys, values = torch.zeros(2, 8, 8), torch.zeros(2, 8, 8)
    parts = [slice(0, 3), *(slice(n, n + 1) for n in range(3, 6))]
    found = [
        run(*(x[:, p].contiguous() for x in (q, k, v)), torch.arange(p.start, p.stop), keys, values)
        for p in parts
    ]
    torch.testing.assert_close(torch.cat(found, 1), whole, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(keys[:, :6], k)
