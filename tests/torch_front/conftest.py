"""How tests of torch begin: those that compile ask for one of these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def fresh() -> None:
    """Nothing is compiled yet, and random numbers are the same in every run."""
    torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")
    torch.manual_seed(0)
    torch._dynamo.reset()


@pytest.fixture
def inference(fresh: None) -> Iterator[None]:
    """`fresh`, and without gradients."""
    torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")
    with torch.no_grad():
        yield
