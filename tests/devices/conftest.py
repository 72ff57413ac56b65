"""The toy device: its shim compiled once, its package installed for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import cuvil_backend_toy as toy
from cuvil.targets import registry

ENTRY_POINTS = """\
[cuvil.backends]
toy = cuvil_backend_toy:BACKEND

[cuvil.devices]
toy = cuvil_backend_toy:device
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> toy.Toy:
    """The device and what it counts."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return toy.Toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution that offers the toy by entry points."""
    info = tmp_path / "site" / "cuvil_backend_toy-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: cuvil-backend-toy\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(info.parent))
    registry.scan.cache_clear()
    yield
    registry.scan.cache_clear()
