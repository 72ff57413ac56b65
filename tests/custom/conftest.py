"""Custom operators are declared for one test at a time, and compiled into a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuvil.ops.custom.registry import OPERATORS


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache; what the test declares is taken away behind it."""
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    yield
    for operator in list(OPERATORS.values()):
        operator.remove()
