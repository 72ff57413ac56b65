"""Custom operators and the compile cache: what changes is seen, what stays is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuvil
from tests.custom.acme import SOURCE, blend, built, model

NET = "net (float[N] x) => (z) { z = com.acme.Blend(x, x) }"
X = np.ones(3, np.float32)


def compiled() -> tuple[float, bool]:
    """The first element of a run, and whether anything was compiled for it."""
    stages: list[str] = []
    engine = cuvil.compile(model(NET), progress=stages.append)
    return float(engine(X)[0]), "compile" in stages


def test_the_same_is_found_again() -> None:
    blend(source=SOURCE)
    assert compiled() == (3, True)
    assert compiled() == (3, False)


def test_a_changed_library_is_not_served_stale(tmp_path: Path) -> None:
    library = built(tmp_path, "so")
    blend(library=library)
    assert compiled() == (3, True)
    other = tmp_path / "other.c"
    other.write_text(SOURCE.read_text().replace("+ y[i]", "- y[i]"))
    library.unlink()  # as linkers do
    subprocess.run(["cc", "-shared", "-fPIC", other, "-o", library], check=True)
    assert compiled() == (1, True)
    assert compiled() == (1, False)


def test_a_changed_declaration_is_another_compile() -> None:
    blend(source=SOURCE).remove()
    operator = blend(source=SOURCE.read_text().replace("+ y[i]", "* 0 + y[i]"))
    assert compiled() == (1, True)
    operator.remove()
    blend(source=SOURCE)
    assert compiled() == (3, True)
    cuvil.custom_op("com.acme::Other", inputs=["T"], outputs=["T"]).compose(lambda b, x: b.neg(x))
    assert compiled() == (3, True)


def test_what_cannot_be_known_is_not_kept() -> None:
    operator = cuvil.custom_op("com.acme::Blend", inputs=["T", "T"], outputs=["T"])
    space: dict[str, Any] = {}
    exec("def build(b, x, y): return b.add(x, y)", space)
    operator.compose(space["build"])
    assert compiled() == (2, True)
    assert compiled() == (2, True)
    secret = object()
    operator.compose(lambda b, x, y: b.sub(x, y) if secret else x)
    assert compiled() == (0, True)
    assert compiled() == (0, True)


def test_compositions_are_told_apart_by_what_they_do() -> None:
    operator = cuvil.custom_op("com.acme::Blend", inputs=["T", "T"], outputs=["T"])
    for factor in (2.0, 5.0):
        operator.compose(lambda b, x, y, factor=factor: b.mul(b.add(x, y), b.scalar(factor, x)))
        assert compiled() == (2 * factor, True)
        assert compiled() == (2 * factor, False)


PACKAGE = """
import cuvil
double = cuvil.custom_op("com.acme::Blend", inputs=["T", "T"], outputs=["T"])
double.compose(lambda b, x, y: b.{what}(x, y))
"""
PROGRAM = """
import sys, numpy as np, onnx, cuvil
stages = []
engine = cuvil.compile(sys.argv[1], progress=stages.append)
print(engine(np.full(3, 3, np.float32))[0], "compile" in stages, "acme_plugin" in sys.modules)
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A folder with an installed package that declares an operator."""
    info = tmp_path / "site" / "acme_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cuvil.operators]\nacme = acme_plugin.operators\n")
    package = tmp_path / "site" / "acme_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "operators.py").write_text(PACKAGE.format(what="add"))
    (tmp_path / "net.onnx").write_bytes(model(NET).SerializeToString())
    return tmp_path


def run(folder: Path) -> str:
    """What a process that knows nothing of the package says of the model."""
    path = os.pathsep.join([str(folder / "site"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder / "net.onnx"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_an_installed_package_declares_operators(plugin: Path) -> None:
    assert run(plugin) == "6.0 True True"
    assert run(plugin) == "6.0 False False"  # a hit imports neither the compiler nor the package
    operators = plugin / "site" / "acme_plugin" / "operators.py"
    operators.write_text(PACKAGE.format(what="mul"))
    assert run(plugin) == "9.0 True True"
    operators.write_text("raise RuntimeError('too old')")
    said = run(plugin)
    assert "the operator is not supported" in said
    assert "operators of 'acme' (acme_plugin.operators) do not load: too old" in said
