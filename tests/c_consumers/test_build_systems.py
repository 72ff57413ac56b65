"""examples/c by CMake's find_package and by pkg-config, on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from c_consumers.digits_example import Consumer, consumer, needs


@pytest.fixture
def here(tmp_path: Path) -> Consumer:
    needs("cc", "c++")
    return consumer(tmp_path, None)


def test_cmake_builds_the_example(here: Consumer) -> None:
    needs("cmake")
    here.call("cmake", "-S", ".", "-B", "made", f"-DCMAKE_PREFIX_PATH={here.folder / 'build'}")
    here.call("cmake", "--build", "made")
    here.check(here.folder / "made")


def test_make_builds_the_example_by_pkg_config(here: Consumer) -> None:
    needs("make", "pkg-config")
    here.call("make")
    here.check(here.folder)
