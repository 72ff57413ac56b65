"""`--custom`: commands that read models with custom operators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuvil.cli import custom
from cuvil.ops.custom.registry import OPERATORS
from tests import small_models
from tests.cli.cli_runner import Command

DECLARATION = """
import cuvil

@cuvil.custom_op("com.acme::Twice", inputs=["T"], outputs=["T"])
def twice(x):
    return x + x

twice.shape(lambda x: x)
twice.native("acme_twice_{T}", source='''
#include <stdint.h>
int32_t acme_twice_f32(const float *x, const int64_t *x_dims, int64_t x_rank,
                       float *y, const int64_t *y_dims, int64_t y_rank) {
  for (int64_t i = 0; i < x_dims[0]; i++) y[i] = 2 * x[i];
  return 0;
}
''')
"""
NET = '<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>'


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A model with an operator of com.acme, and the file that declares it."""
    text = NET + "net (float[N] x) => (float[N] y) { a = Neg(x)  y = com.acme.Twice(a) }"
    path = small_models.saved(small_models.onnx.parser.parse_model(text), tmp_path / "net.onnx")
    declaration = tmp_path / "acme.py"
    declaration.write_text(DECLARATION)
    yield str(path), str(declaration)
    for operator in list(OPERATORS.values()):
        operator.remove()
    custom.LOADED.clear()


def test_commands_take_a_file_of_declarations(
    cuvil: Command, files: tuple[str, str], tmp_path: Path
) -> None:
    net, acme = files
    refused = cuvil("check", net)
    assert refused.status == 1 and "cuvil.custom_op('com.acme::Twice', ...)" in refused.out
    assert cuvil("check", net, "--custom", acme).status == 0
    build = str(tmp_path / "build")
    assert cuvil("compile", net, "-o", build, "--custom", acme, "--emit", "so,o").status == 0
    said = cuvil("inspect", build).out
    assert "calls, for com.acme::Twice: int32_t acme_twice_f32(const float *x0," in said
    assert "acme_twice_f32" in cuvil("inspect", f"{build}/net.o", "--json").json["undefined"]
    checked = cuvil("verify", net, "--custom", acme, "--oracle", "reference", "--size", "N=3")
    assert checked.status == 0, checked.err
    run = cuvil("run", net, "--custom", acme, "--input", "x=[1, -2]", "--json")
    assert run.status == 0, run.err


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("none.py", None, "there is no such file"),
        ("acme.py", "import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("acme.py", "import cuvil\ncuvil.custom_op('x', inputs=[], outputs=['f32'])", "no name"),
    ],
)
def test_a_file_that_does_not_load(
    cuvil: Command, tmp_path: Path, name: str, text: str | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    found = cuvil("check", "net.onnx", "--custom", str(tmp_path / name))
    assert found.status != 0
    assert f"--custom {tmp_path / name}: " in found.err and reason in found.err
