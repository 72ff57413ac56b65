"""Under Bazel a test sees the packages among its dependencies and no others."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

PACKAGES = ("cuvil", "cuvil_runtime", "cuvil_backend_x86")

# This target depends on none of them, though `make setup` offers all of them to plain Python.
pytestmark = pytest.mark.skipif("TEST_SRCDIR" not in os.environ, reason="not under Bazel")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_outside_the_dependencies_is_not_found(package: str) -> None:
    assert importlib.util.find_spec(package) is None


@pytest.mark.parametrize("package", PACKAGES)
def test_nor_is_it_in_a_child_process(package: str) -> None:
    code = f"import importlib.util as u; print(u.find_spec({package!r}))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "None"
