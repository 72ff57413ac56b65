"""Compiled libraries as Python and the system's loader see them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from aot.compiled import compiled, dense, dense_reference

from cuvil import pipeline
from cuvil.aot import link
from cuvil.aot.imports import ALLOWED
from cuvil.aot.write import compile_to_folder
from cuvil.codegen.elf import defined_globals, undefined_symbols
from cuvil.engine.front_door import compile_engine
from cuvil.errors import TargetError
from cuvil.options import Options
from cuvil.targets.backend import Feature, VariantSpec
from cuvil.targets.registry import find
from cuvil.targets.target_list import Targets
from cuvil_runtime import load
from tests import small_models
from tools.models import zoo

X = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)


@pytest.mark.parametrize("kind", ["so", "o"])
def test_only_the_models_own_names_are_visible(kind: str) -> None:
    artefact = compiled("dense")
    visible = defined_globals(artefact.files[kind].read_bytes(), exported=True)
    assert {"dense_inference", "dense_open", "dense_run", "dense_artefact"} <= set(visible)
    assert [name for name in visible if not name.startswith("dense_")] == []


@pytest.mark.parametrize("kind", ["so", "o"])
@pytest.mark.parametrize("name", ["dense", "stages"])
def test_nothing_but_a_few_functions_of_libc_is_imported(name: str, kind: str) -> None:
    imported = undefined_symbols(compiled(name).files[kind].read_bytes())
    assert set(imported) <= ALLOWED


def test_the_system_sees_libc_and_threads_at_most() -> None:
    ldd = shutil.which("ldd")
    if not ldd:
        pytest.skip("no ldd")
    said = subprocess.run([ldd, compiled("dense").files["so"]], capture_output=True, text=True)
    needed = {line.split()[0].split(".")[0] for line in said.stdout.splitlines()}
    assert needed <= {"linux-vdso", "libc", "libm", "libpthread", "/lib64/ld-linux-x86-64"}


def test_another_c_library_can_be_the_target(tmp_path: Path) -> None:
    """Neither that library nor a compiler for it is needed."""
    options = Options(target="x86_64-linux-musl", cpu="x86-64")
    library = compile_to_folder(dense(), tmp_path, options).files["so"].read_bytes()
    assert set(undefined_symbols(library)) <= ALLOWED
    assert b"\0libc.so\0" in library and b"libc.so.6" not in library


@pytest.mark.parametrize("variant", [None, "avx512", "avx2", "baseline"])
def test_every_variant_computes_the_same(variant: str | None) -> None:
    try:
        model = load(compiled("dense").files["so"], variant=variant)
    except TargetError as error:
        pytest.skip(str(error))
    np.testing.assert_allclose(model.run([X])[0], dense_reference(X), rtol=1e-5, atol=1e-6)
    assert variant in (None, model.variant)


def test_the_variable_chooses_a_variant_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUVIL_VARIANT", "baseline")
    assert load(compiled("dense").files["so"]).variant == "baseline"


def test_a_library_and_the_engine_in_process_agree_to_the_bit() -> None:
    x = np.random.default_rng(2).standard_normal((16, 8)).astype(np.float32)
    engine = compile_engine(small_models.stages(), Options(), threads=1)
    model = load(compiled("stages").files["so"], threads=1, variant=engine.model.variant)
    for ours, theirs in zip(model.run([x]), engine(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_python_takes_the_tensors_of_sequences_in_a_row() -> None:
    model = load(compiled("pairs").files["so"])
    assert [t.name for t in model.inputs] == ["items[0]", "items[1]", "shift"]
    items = [np.array([1, -2], np.float32), np.array([3], np.float32)]
    first, second, kept, positive = model.run([*items, np.float32(0.5)])
    assert (first.tolist(), second.tolist(), kept) == ([1.5, -1.5], [3.5], 0.5)
    assert positive.tolist() == [1]


def test_a_library_may_be_renamed_and_stripped(tmp_path: Path) -> None:
    path = tmp_path / "something-else.bin"
    shutil.copy(compiled("dense").files["so"], path)
    if shutil.which("strip"):
        subprocess.run(["strip", path], check=True)
    np.testing.assert_allclose(load(path).run([X])[0], dense_reference(X), rtol=1e-5, atol=1e-6)


def test_a_cpu_without_the_features_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one variant of this library needs a feature that no cpu has."""
    backend, target = find("x86_64")
    facts = backend.variants(target)[-1].facts
    features = {**backend.features, "imaginary": Feature("imaginary", 60, "")}
    variants = [VariantSpec("future", ("imaginary",), facts)]
    future = replace(backend, features=features, variants=lambda _: variants)
    monkeypatch.setattr(pipeline, "resolve", lambda *_: Targets((), (future, target)))
    artefact = compile_to_folder(dense(), tmp_path, Options())
    with pytest.raises(TargetError, match=r"'future' of 'dense' needs .* imaginary"):
        load(artefact.files["so"])


@pytest.mark.parametrize("linker", link.linkers(), ids=lambda linker: linker.name)
def test_every_linker_here_makes_a_library_that_runs(
    linker: link.Linker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a home folder, as in a build sandbox."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(link, "linkers", lambda: [linker])
    options = Options(target="x86_64", cpu="x86-64")
    artefact = compile_to_folder(dense(), tmp_path, options)
    np.testing.assert_allclose(
        load(artefact.files["so"]).run([X])[0], dense_reference(X), rtol=1e-5, atol=1e-6
    )
    visible = defined_globals(artefact.files["so"].read_bytes(), exported=True)
    assert [name for name in visible if not name.startswith("dense_")] == []


def test_a_small_model_stays_small(tmp_path: Path) -> None:
    """Three variants, program and runtime of the voice detector in 400 kB."""
    try:
        case = zoo.get("silero-vad")
    except zoo.ZooError as missing:
        pytest.skip(str(missing))
    artefact = compile_to_folder(case.path, tmp_path, Options(target="x86_64"))
    assert artefact.files["so"].stat().st_size < artefact.manifest["weights_bytes"] + 400_000


def test_a_library_compiled_anew_replaces_the_one_loaded_from_there(tmp_path: Path) -> None:
    """The system's loader would give the one that it knows by this path."""
    ones = np.ones(4, np.float32)
    for scale in (2, 3, 2, 4):
        artefact = compile_to_folder(small_models.affine("scaled", scale, 0), tmp_path, Options())
        for _ in range(2):
            np.testing.assert_array_equal(load(artefact.files["so"]).run([ones])[0], ones * scale)
