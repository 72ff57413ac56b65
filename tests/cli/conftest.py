"""A cache of its own for the commands under test, and models for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import small_models
from tests.cli.cli_runner import Command


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One cache for a whole run of the tests, away from the user's."""
    root = tmp_path_factory.getbasetemp() / "cuvil-cache"
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(root))


@pytest.fixture
def cuvil(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line."""
    return Command(capsys)


@pytest.fixture
def dynamic(tmp_path: Path) -> Path:
    """A file with total = x + y and twice = 2 * total of [N, 3]."""
    return small_models.saved(small_models.dynamic(), tmp_path / "dynamic.onnx")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """A file with y = relu(x @ w + b) for x of [N, 8]."""
    return small_models.saved(small_models.dense(), tmp_path / "dense.onnx")
