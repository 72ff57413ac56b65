"""The zoo as compiled libraries, each compiled once per test file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from models.checks import ZooModel, zoo_case

from cuvil_runtime import include_dir
from tools.models import c_program
from tools.models.compiled import Library


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of an `EveryModel` run for each of its names, model by model."""
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", metafunc.cls.names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    made = Library(tmp_path_factory.mktemp("zoo"))
    yield made
    made.clear()


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest, library: Library) -> ZooModel:
    """The zoo model named by the parameter, compiled; skipped where it cannot be had."""
    case = zoo_case(request.param)
    return ZooModel(case, library.of(case))


@pytest.fixture(scope="session")
def c_runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C program that runs any library."""
    if c_program.c_compiler() is None:
        pytest.skip("no C compiler")
    return c_program.build(Path(include_dir()), tmp_path_factory.mktemp("c"))
