"""The wheels in dist/ install into an empty environment and work with no repository around.

`make check-wheels` builds them and runs this. It installs from package registries, so it is not
one of Bazel's tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIST = Path(os.environ.get("CUVIL_DIST", ROOT / "dist")).resolve()
BACKENDS = sorted(path.parent.name for path in ROOT.glob("backends/*/pyproject.toml"))
PACKAGES = ("cuvil", "cuvil_runtime", *(f"cuvil_backend_{name}" for name in BACKENDS))


class Environment:
    """A virtual environment away from the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)

    def run(self, *command: str) -> str:
        """What a program of the environment prints; fails with what it says on failure."""
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        program = str(self.folder / "bin" / command[0])
        result = subprocess.run(
            [program, *command[1:]], cwd=self.folder, env=env, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def python(self, code: str) -> str:
        return self.run("python", "-c", code).strip()

    def install(self, *packages: str) -> None:
        self.run("python", "-m", "pip", "install", "-q", "--find-links", str(DIST), *packages)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the runtime only, as on a device that runs artefacts."""
    environment = Environment(tmp_path_factory.mktemp("runtime"))
    environment.install("cuvil-runtime")
    return environment


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with all backends, which bring the compiler and the runtime."""
    environment = Environment(tmp_path_factory.mktemp("compiler"))
    environment.install(*(f"cuvil-backend-{name}" for name in BACKENDS))
    return environment


def wheel(name: str) -> Path:
    found = list(DIST.glob(f"{name}-*.whl"))
    assert len(found) == 1, f"run `make wheels`: {DIST} holds {found} for {name}"
    return found[0]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_holds_its_package_its_licence_and_no_tests(name: str) -> None:
    names = zipfile.ZipFile(wheel(name)).namelist()
    folders = {path.split("/")[0] for path in names}
    assert folders == {name, f"{wheel(name).name.rsplit('-', 3)[0]}.dist-info"}
    assert any(path.endswith("licenses/LICENSE") for path in names)
    assert f"{name}/py.typed" in names


def test_the_runtime_is_small_and_needs_numpy_only(runtime: Environment) -> None:
    assert wheel("cuvil_runtime").stat().st_size < 1_000_000
    packages = {line.split("==")[0] for line in runtime.run("pip", "freeze").splitlines()}
    assert {package.split(" @ ")[0] for package in packages} == {"cuvil-runtime", "numpy"}
    assert "cuvil_runtime" in runtime.python("import cuvil_runtime; print(cuvil_runtime.__file__)")


def test_the_backends_are_found(compiler: Environment) -> None:
    code = (
        "from importlib.metadata import entry_points\n"
        "for point in entry_points(group='cuvil.backends'):\n"
        "    print(point.name, type(point.load()).__name__)"
    )
    assert sorted(compiler.python(code).splitlines()) == [f"{name} Backend" for name in BACKENDS]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_ships_the_runtime_as_bitcode(backend: str) -> None:
    names = zipfile.ZipFile(wheel(f"cuvil_backend_{backend}")).namelist()
    assert [name for name in names if name.endswith(".bc")]


@pytest.mark.parametrize("command", ["cuvil", "cuvil-opt"])
def test_the_commands_are_there(compiler: Environment, command: str) -> None:
    assert compiler.run(command, "--help")


def test_everything_imports(compiler: Environment) -> None:
    code = (
        "import importlib, pkgutil\n"
        f"for name in {PACKAGES}:\n"
        "    package = importlib.import_module(name)\n"
        "    for module in pkgutil.walk_packages(package.__path__, name + '.'):\n"
        "        if not module.name.endswith('__main__'):\n"
        "            try:\n"
        "                importlib.import_module(module.name)\n"
        "            except ModuleNotFoundError as error:\n"
        "                if error.name not in ('torch', 'transformers'):  # extras\n"
        "                    raise\n"
    )
    compiler.python(code)
