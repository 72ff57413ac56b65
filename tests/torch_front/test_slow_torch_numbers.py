"""torch.compile(m, backend="cuvil") gives eager's numbers: special values, and random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")

from tests.torch_front.torch_calls import same  # noqa: E402

F = torch.nn.functional
VALUES = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e30, -1e30, *map(float, ("nan", "inf", "-inf"))]
pytestmark = pytest.mark.usefixtures("inference")


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_functions_of_two_special_values(kind: Any) -> None:
    pairs = torch.cartesian_prod(*[torch.tensor(VALUES, dtype=kind)] * 2)

    def model(x: Any, y: Any) -> Any:
        return (
            torch.floor_divide(x, y), torch.atan2(x, y), torch.hypot(x, y), torch.copysign(x, y),
            torch.maximum(x, y), torch.fmin(x, y), torch.logaddexp(x, y), torch.xlogy(x, y),
            torch.sign(x), torch.heaviside(x, y), torch.isclose(x, y), torch.nextafter(x, y),
        )  # fmt: skip

    same(model, *(column.contiguous() for column in pairs.unbind(1)))


@pytest.mark.parametrize("alpha", [True, False])
def test_sums_of_bools(alpha: bool) -> None:
    x, y = torch.tensor([[True, False], [False, False]]), torch.tensor([[True, True]])
    at = torch.tensor([1])
    same(lambda x, y: (torch.add(x, y, alpha=alpha), x.index_add(0, at, y, alpha=alpha)), x, y)


def test_integers_at_their_limits() -> None:
    x = torch.tensor([2**63 - 1, -(2**63), 5, -5])
    same(lambda x: [torch.floor_divide(x, n) for n in (3, -3, 64, -64)], x)
    same(torch.relu, torch.tensor([0, 7, 255], dtype=torch.uint8))


def test_quotients_of_half_floats_do_not_overflow_on_the_way() -> None:
    x = torch.tensor([-65504.0, 88.9, 1.0])
    for kind in (torch.float16, torch.bfloat16):
        same(lambda x: torch.floor_divide(x[0], x[1:]), x.to(kind))


@pytest.mark.parametrize("index", [torch.zeros(0, dtype=torch.long), torch.zeros(2, 0).long()])
def test_no_index_at_all(index: Any) -> None:
    loose = {"check_stride": False}  # of a tensor without elements it means nothing
    x = torch.randn(3, 4) if index.dim() > 1 else torch.randn(3)
    same(
        lambda x, i: (x.gather(0, i), x.scatter(0, i, 1.0), x.scatter_add(0, i, x)),
        x,
        index,
        **loose,
    )
    same(lambda x, i: x.gather(0, i), torch.randn(5), torch.zeros(2, 0, dtype=torch.uint8), **loose)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: F.dropout(x, 0.4), lambda x: F.alpha_dropout(x, 0.4, True),
        lambda x: F.dropout2d(x[None, None], 0.4), lambda x: F.rrelu(x, training=True),
        lambda x: (torch.rand_like(x), torch.randint(9, (5,)), torch.normal(x, 2.0)),
        lambda x: x.clone().exponential_() + torch.bernoulli(x.sigmoid()),
        lambda x: torch.multinomial(x.softmax(-1), 3),
    ],
)  # fmt: skip
def test_random_numbers_are_those_of_eager(draw: Callable[[Any], Any]) -> None:
    x = torch.randn(6, 5)
    fast = torch.compile(lambda x: draw(x * 2), backend="cuvil", fullgraph=True)
    for _ in range(2):
        state = torch.get_rng_state()
        wanted = draw(x * 2)
        torch.set_rng_state(state)
        torch.testing.assert_close(fast(x), wanted, rtol=1e-4, atol=1e-5)


def test_what_draws_nothing_in_evaluation_is_compiled() -> None:
    same(torch.nn.Sequential(torch.nn.RReLU(), torch.nn.Dropout()).eval(), torch.randn(3, 4))
