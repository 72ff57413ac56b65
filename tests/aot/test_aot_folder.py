"""What `compile_to_folder` leaves: all files or none, and the same bytes each time."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from aot.compiled import compiled, dense, dense_reference

from cuvil.aot import link
from cuvil.aot.write import compile_to_folder, split_output
from cuvil.errors import ArtefactError, CompileError, OptionError
from cuvil.ir.text import parse_ir
from cuvil.options import Options
from cuvil.pipeline import identifier, weights_place
from cuvil_runtime import load

ONE = Options(target="x86_64", cpu="x86-64")  # one variant: quick to compile


def names(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_a_folder_has_all_that_a_c_program_needs() -> None:
    artefact = compiled("dense")
    assert names(artefact.folder) == {
        "libdense.so", "libdense.a", "dense.o", "dense.h", "dense.pc", "denseConfig.cmake",
        "manifest.json", "include/cuvil/abi.h", "include/cuvil/cuvil.h",
        "include/cuvil/cuvil.hpp", "include/cuvil/device.h",
    }  # fmt: skip
    assert artefact.library == artefact.folder / "libdense.so"
    assert all(path.exists() for path in artefact.files.values())


def test_the_manifest_tells_what_the_model_takes_gives_and_weighs() -> None:
    artefact = compiled("dense")
    data = json.loads(artefact.files["manifest"].read_text())
    assert data == artefact.manifest
    assert data["inputs"] == [{"name": "x", "dtype": "f32", "dims": ["n", 8]}]
    assert data["outputs"] == [{"name": "y", "dtype": "f32", "dims": ["n", 16]}]
    assert data["symbols"] == [{"name": "n", "min": 0, "max": None}]
    assert [v["name"] for v in data["variants"]] == ["avx512", "avx2", "baseline"]
    assert data["target"]["triple"] == "x86_64-linux-gnu"
    assert data["weights_bytes"] >= (8 * 16 + 16) * 4
    assert len(data["build_id"]) == len(data["model"]["sha256"]) == 64
    (kernel,) = data["kernels"]
    assert set(kernel["code_bytes"]) == {"avx512", "avx2", "baseline"}
    assert kernel["nodes"]


def test_the_runtime_part_is_small() -> None:
    """Under 50 kB of code; the rest of what it brings is tables and symbols."""
    assert 1000 < compiled("dense").manifest["code_bytes"]["runtime"] < 50_000


def test_the_same_input_gives_the_same_bytes_wherever_it_goes(tmp_path: Path) -> None:
    emit = ("so", "a", "o", "asm", "llvm", "mlir")
    first, second = (
        compile_to_folder(dense(), tmp_path / place / "out", ONE, emit=emit) for place in "ab"
    )
    assert names(first.folder) == names(second.folder)
    for name in names(first.folder):
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes(), name


def test_texts_can_be_asked_for(tmp_path: Path) -> None:
    artefact = compile_to_folder(dense(), tmp_path, ONE, emit=("mlir", "llvm", "asm"))
    parse_ir(artefact.files["mlir"].read_text())
    assert "define" in (artefact.files["llvm"] / "baseline.0.ll").read_text()
    assert ".text" in (artefact.files["asm"] / "baseline.0.s").read_text()
    assert not list(tmp_path.glob("*.so"))


def test_external_weights_lie_beside_the_library(tmp_path: Path) -> None:
    options = Options(target="x86_64", cpu="x86-64", weights="external")
    artefact = compile_to_folder(dense(), tmp_path, options, emit=("so",))
    assert artefact.manifest["weights_file"] == "dense.weights"
    assert artefact.files["weights"].stat().st_size > artefact.manifest["weights_bytes"]
    x = np.ones((2, 8), np.float32)
    np.testing.assert_allclose(load(artefact.library).run([x])[0], dense_reference(x), rtol=1e-5)
    artefact.files["weights"].unlink()
    with pytest.raises(ArtefactError, match=r"dense\.weights"):
        load(artefact.library)


def test_weights_of_another_build_are_refused(tmp_path: Path) -> None:
    options = Options(target="x86_64", cpu="x86-64", weights="external")
    one = compile_to_folder(dense(), tmp_path / "one", options)
    other = compile_to_folder(dense(), tmp_path / "other", replace(options, opt_level=1))
    shutil.copy(other.files["weights"], one.files["weights"])
    with pytest.raises(ArtefactError, match="belongs to another build"):
        load(one.library)


@pytest.mark.parametrize(
    ("weights", "size", "file"),
    [
        ("auto", 1 << 30, None),
        ("auto", (1 << 30) + 1, "big.weights"),
        ("embed", (1 << 30) + 1, None),
        ("external", 4, "big.weights"),
        ("external", 0, None),
    ],
)
def test_where_weights_go(weights: str, size: int, file: str | None) -> None:
    plan = SimpleNamespace(name="big", weights_bytes=size)
    assert weights_place(plan, Options(weights=weights)) == file  # type: ignore[arg-type]


def test_weights_too_large_to_embed_are_refused() -> None:
    plan = SimpleNamespace(name="big", weights_bytes=3 << 30)
    with pytest.raises(OptionError, match="--weights external"):
        weights_place(plan, Options(weights="embed"))  # type: ignore[arg-type]


def test_without_a_linker_the_message_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "linkers", list)
    with pytest.raises(CompileError, match=r"pip install 'cuvil\[link\]'"):
        compile_to_folder(dense(), tmp_path / "so", ONE, emit=("so",))
    assert names(tmp_path / "so") == set()
    artefact = compile_to_folder(dense(), tmp_path / "a", ONE, emit=("a", "o"))
    assert {"libdense.a", "dense.o"} <= names(artefact.folder)


def test_a_linker_that_fails_is_quoted_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "linkers", lambda: [link.Linker("false", ("false",))])
    with pytest.raises(CompileError, match=r"libdense\.so \(false failed \(1\)"):
        compile_to_folder(dense(), tmp_path, ONE)
    assert names(tmp_path) == set()


def test_what_cannot_be_written_is_an_error_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtefactError, match="file"):
        compile_to_folder(dense(), tmp_path / "file", ONE)


@pytest.mark.parametrize("emit", [(), ("exe",)])
def test_kinds_are_checked_first(tmp_path: Path, emit: tuple[str, ...]) -> None:
    with pytest.raises(OptionError, match="so, a, o, llvm, asm, mlir"):
        compile_to_folder("no-such.onnx", tmp_path, emit=emit)


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ("build", (Path("build"), "", None)),
        ("build/libbert.so", (Path("build"), "bert", ("so",))),
        ("libbert.a", (Path("."), "bert", ("a",))),
        ("x/bert.o", (Path("x"), "bert", ("o",))),
    ],
)
def test_an_output_path_may_name_the_library(path: str, meaning: tuple[object, ...]) -> None:
    assert split_output(path) == meaning


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("bert", "bert"),
        ("a-b.c", "a_b_c"),
        ("2nd", "model_2nd"),
        ("cuvil", "model_cuvil"),
        ("", "model"),
    ],
)
def test_names_become_prefixes_of_symbols(name: str, word: str) -> None:
    assert identifier(name) == word
