"""Custom operators in compiled libraries, archives and objects, called from C."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuvil
from cuvil.aot import link
from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.codegen.elf import defined_globals, undefined_symbols
from cuvil.options import Options
from tests.custom.acme import blend, built, model

NET = """net (float[N, 3] x, float[N, 3] y) => (float[N, 3] z) {
  a = Relu(x)  b = com.acme.Blend<gain = 3.0>(a, y)  z = Neg(b) }"""
SOURCE = """
#include <math.h>
#include <stdint.h>
int32_t acme_blend_f32(const float *x, const int64_t *x_dims, int64_t x_rank,
                       const float *y, const int64_t *y_dims, int64_t y_rank,
                       float *z, const int64_t *z_dims, int64_t z_rank,
                       double gain, const char *mode) {
  (void)x_dims, (void)x_rank, (void)y_dims, (void)y_rank, (void)mode;
  for (int64_t i = 0; i < z_dims[0] * z_dims[z_rank - 1]; i++) {
    if (x[i] > 1e29f) return 42;
    z[i] = fmaf(x[i], (float)gain, y[i]);
  }
  return 0;
}
"""
SAID = """-1 -1 -4 -8 -11 -14 0
14 custom operator failed: custom operator failed with status 42 at k1_com_acme_Blend\tb
0
"""


def compiled(folder: Path, emit: str, **where: Any) -> Artefact:
    blend(**where)
    return compile_to_folder(model(NET), folder, Options(name="net"), emit=emit.split())


def ran(folder: Path, *link_with: str | Path) -> str:
    """What use_blend.c prints, linked with these files; skips where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no cc on this machine")
    program = folder / "use_blend"
    source = Path(__file__).with_name("use_blend.c")
    words = ["-Wall", "-Wextra", "-Werror", "-I", folder, source, *link_with, "-lm", "-pthread"]
    made = subprocess.run(
        [compiler, *words, f"-Wl,-rpath,{folder}", "-o", program], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_a_source_becomes_a_part_of_the_library(tmp_path: Path) -> None:
    artefact = compiled(tmp_path, "so", source=SOURCE)
    library = artefact.files["so"].read_bytes()
    assert all(name.startswith("net_") for name in defined_globals(library, exported=True))
    assert "acme_blend_f32" not in undefined_symbols(library)
    assert ran(tmp_path, artefact.files["so"]) == SAID


def test_a_shared_library_comes_along(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    library = tmp_path / "own" / "libacme.so"
    (tmp_path / "acme.c").write_text(SOURCE)
    flags = ["-shared", "-fPIC", "-Wl,-soname,libacme.so.1"]
    subprocess.run(["cc", *flags, tmp_path / "acme.c", "-o", library, "-lm"], check=True)
    artefact = compiled(tmp_path / "out", "so", library=library)
    library.unlink()
    assert artefact.files["custom:libacme.so.1"] == tmp_path / "out" / "libacme.so.1"
    moved = tmp_path / "moved"
    shutil.copytree(tmp_path / "out", moved)
    shutil.rmtree(tmp_path / "out")
    assert ran(moved, moved / "libnet.so") == SAID
    ones = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(cuvil.load(moved)(ones, ones), -4 * ones)


@pytest.mark.parametrize("kind", ["o", "a"])
def test_objects_and_archives_leave_the_function_to_the_program(kind: str, tmp_path: Path) -> None:
    artefact = compiled(tmp_path, kind)
    if kind == "o":
        assert "acme_blend_f32" in undefined_symbols(artefact.files["o"].read_bytes())
    (tmp_path / "acme.c").write_text(SOURCE)
    assert ran(tmp_path, tmp_path / "acme.c", artefact.files[kind]) == SAID


@pytest.mark.parametrize("kind", ["o", "a"])
def test_users_objects_and_archives_are_linked_in(kind: str, tmp_path: Path) -> None:
    artefact = compiled(tmp_path / "out", "so", object=built(tmp_path, kind))
    x = np.full((1, 3), 2, np.float32)
    np.testing.assert_array_equal(cuvil.load(artefact.files["so"])(x, x), -8 * np.ones((1, 3)))


def test_header_and_manifest_say_what_is_called(tmp_path: Path) -> None:
    artefact = compiled(tmp_path, "o")
    header = " ".join(artefact.files["header"].read_text().replace("\n *", "").split())
    declaration = (
        "int32_t acme_blend_f32(const float *x, const int64_t *x_dims, int64_t x_rank, const float "
        "*y, const int64_t *y_dims, int64_t y_rank, float *z, const int64_t *z_dims, int64_t "
        "z_rank, double gain, const char *mode);"
    )
    assert f"com.acme::Blend: {declaration}" in header
    (row,) = json.loads(artefact.files["manifest"].read_text())["custom"]
    assert row == {
        "operator": "com.acme::Blend", "symbol": "acme_blend_f32", "prototype": declaration,
    }  # fmt: skip


def test_a_library_needs_the_function(tmp_path: Path) -> None:
    with pytest.raises(cuvil.CompileError, match=r"nothing says where .*--emit o, --emit a"):
        compiled(tmp_path, "so")


def test_an_archive_without_the_function(tmp_path: Path) -> None:
    operator = cuvil.custom_op("com.acme::Blend", inputs=["x: f32", "y: f32"], outputs=["f32"])
    operator.shape(lambda x, y: x)
    operator.native("acme_bland", object=built(tmp_path, "a"))
    net = model("net (float[3] x) => (z) { z = com.acme.Blend(x, x) }")
    with pytest.raises(cuvil.CompileError, match=r"com\.acme::Blend: .*libacme\.a.*acme_bland"):
        compile_to_folder(net, tmp_path / "out", Options(name="net"), emit=("so",))


def test_only_a_compiler_driver_can_link_users_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = [linker for linker in link.linkers() if not linker.wrap]
    monkeypatch.setattr(link, "linkers", lambda: bare)
    with pytest.raises(cuvil.CompileError, match="needs a C compiler to be linked with"):
        compiled(tmp_path / "out", "so", object=built(tmp_path, "o"))


def test_the_same_input_gives_the_same_bytes_and_other_code_another_build(tmp_path: Path) -> None:
    builds = []
    for name, source in (("a", SOURCE), ("b", SOURCE), ("c", SOURCE.replace("fmaf", "fmaf "))):
        artefact = compiled(tmp_path / name, "o", source=source)
        builds.append((artefact.files["o"].read_bytes(), artefact.manifest["build_id"]))
        cuvil.ops.custom.registry.OPERATORS["com_acme_Blend"].remove()
    assert builds[0] == builds[1]
    assert builds[0][1] != builds[2][1]
