"""The package of examples/backend_npu, built and installed by pip into a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuvil.targets import registry

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "backend_npu"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for Python's path with the package in it."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("npu")
    shutil.copytree(EXAMPLE, folder / "source")
    pip = ["-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [sys.executable, *pip, "--target", folder / "site", folder / "source"],
        env={
            **os.environ,
            "CFLAGS": "-Wall -Wextra -Werror",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(autouse=True)
def installed(site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The package is found by its entry points, in the test only."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    registry.scan.cache_clear()
    yield
    registry.scan.cache_clear()
