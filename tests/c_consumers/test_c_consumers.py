"""Programs in C and C++ that use compiled models, linked and loaded in every way there is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from aot.compiled import compiled
from c_consumers.programs import build, check, compiler, run

from cuvil.aot.write import compile_to_folder
from cuvil.codegen.elf import defined_globals
from cuvil.options import Options
from tests import small_models


@pytest.mark.parametrize("kind", ["o", "a", "so"])
def test_models_share_a_program(kind: str, tmp_path: Path) -> None:
    models = [compiled(name) for name in ("add1", "mul2", "twin")]
    link = [model.files[kind] for model in models]
    check(build("two_models.c", tmp_path / "program", [m.folder for m in models], link))


def test_libraries_with_equal_names_keep_their_own_code(tmp_path: Path) -> None:
    options = Options(target="x86_64", cpu="x86-64", name="add1")
    other = compile_to_folder(small_models.affine("other", 3, -1), tmp_path / "other", options)
    copy = tmp_path / "copy.so"
    shutil.copy(compiled("add1").files["so"], copy)
    program = build("twins.c", tmp_path / "twins", link=["-ldl"], flags=["-std=gnu99"])
    libraries = [compiled("add1").files["so"], "1", "1", other.files["so"], "3", "-1"]
    check(program, *libraries, copy, "1", "1")


@pytest.mark.parametrize("kind", ["a", "so"])
def test_cpp_calls_it(kind: str, tmp_path: Path) -> None:
    dense = compiled("dense")
    check(build("caller.cpp", tmp_path / "caller", [dense.folder], [dense.files[kind]]))


@pytest.mark.parametrize(
    "flags",
    [[], ["-fno-exceptions"], ["-fsanitize=address,undefined"]],
    ids=["plain", "no exceptions", "asan"],
)
def test_cpp_owns_models_and_contexts(flags: list[str], tmp_path: Path) -> None:
    if "-fsanitize" in "".join(flags) and not _sanitizer_works(flags, tmp_path):
        pytest.skip("the C compiler has no sanitizers")
    models = [compiled("dense"), compiled("found")]
    folders = [folder for m in models for folder in (m.folder, m.folder / "include")]
    link = [model.files["a"] for model in models]
    check(build("wrapper.cpp", tmp_path / "wrapper", folders, link, flags))


@pytest.mark.parametrize("flags", [[], ["-fsanitize=address,undefined"]], ids=["plain", "asan"])
def test_eight_threads_call_one_model(flags: list[str], tmp_path: Path) -> None:
    """TSan sees nothing of atomics in compiled libraries: runtime_c's own tests run under it."""
    stages = compiled("stages")
    if flags and not _sanitizer_works(flags, tmp_path):
        pytest.skip("the C compiler has no sanitizers")
    link = [stages.files["a"]]
    check(build("threads.c", tmp_path / "threads", [stages.folder], link, flags))


def test_many_inputs(tmp_path: Path) -> None:
    wide = compiled("wide")
    check(build("wide.c", tmp_path / "wide", [wide.folder], [wide.files["a"]]))


@pytest.mark.parametrize("flags", [[], ["-fsanitize=address,undefined"]], ids=["plain", "asan"])
def test_extents_that_the_run_finds(flags: list[str], tmp_path: Path) -> None:
    if flags and not _sanitizer_works(flags, tmp_path):
        pytest.skip("the C compiler has no sanitizers")
    models = [compiled("found"), compiled("steps")]
    link = [model.files["a"] for model in models]
    check(build("found.c", tmp_path / "found", [m.folder for m in models], link, flags))


@pytest.mark.parametrize("flags", [[], ["-fsanitize=address,undefined"]], ids=["plain", "asan"])
def test_strings(flags: list[str], tmp_path: Path) -> None:
    if flags and not _sanitizer_works(flags, tmp_path):
        pytest.skip("the C compiler has no sanitizers")
    words = compiled("words")
    check(build("words.c", tmp_path / "words", [words.folder], [words.files["a"]], flags))


@pytest.mark.parametrize("flags", [[], ["-fsanitize=address,undefined"]], ids=["plain", "asan"])
def test_sequences_and_optionals(flags: list[str], tmp_path: Path) -> None:
    if flags and not _sanitizer_works(flags, tmp_path):
        pytest.skip("the C compiler has no sanitizers")
    pairs = compiled("pairs")
    check(build("pairs.c", tmp_path / "pairs", [pairs.folder], [pairs.files["a"]], flags))


def test_only_models_of_strings_hold_the_code_of_strings() -> None:
    for name, holds in (("words", True), ("add1", False)):
        assert (b"cuvil_string_concat" in compiled(name).files["o"].read_bytes()) == holds


def _sanitizer_works(flags: list[str], folder: Path) -> bool:
    source, program = folder / "empty.c", folder / "empty"
    source.write_text("int main(void) { return 0; }\n")
    built = run(compiler(), *flags, source, "-o", program)
    return built.returncode == 0 and run(program).returncode == 0


def test_the_whole_header_works(tmp_path: Path) -> None:
    dense = compiled("dense")
    check(build("full_use.c", tmp_path / "full_use", [dense.folder], [dense.files["so"]]))


def test_the_header_declares_what_the_library_exports() -> None:
    dense = compiled("dense")
    text = re.sub(r"/\*.*?\*/", "", dense.files["header"].read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"\b(dense_\w+)(?=\(|;)", text)) - {"dense_model", "dense_context"}
    declared.discard("dense_dims")
    exported = defined_globals(dense.files["so"].read_bytes(), exported=True)
    assert declared == set(exported)


@pytest.mark.parametrize("variant", ["avx512", "avx2", "baseline"])
def test_a_variant_can_be_chosen_from_outside(variant: str, tmp_path: Path) -> None:
    program = _variant_program(tmp_path)
    result = run(program, environment={"CUVIL_VARIANT": variant})
    if result.returncode == 2:
        assert f"variant '{variant}' of 'dense' needs cpu features" in result.stdout
    else:
        assert result.stdout == f"{variant}\n", result.stderr


@pytest.mark.parametrize(("cpu", "variant"), [("Nehalem", "baseline"), ("Haswell", "avx2")])
def test_older_cpus_get_their_variant(cpu: str, variant: str, tmp_path: Path) -> None:
    emulator = _emulator()
    result = run(emulator, "-cpu", cpu, _variant_program(tmp_path))
    assert result.stdout == f"{variant}\n", result.stderr


def test_a_variant_that_the_cpu_lacks_is_an_error_not_a_crash(tmp_path: Path) -> None:
    environment = {"CUVIL_VARIANT": "avx2"}
    result = run(
        _emulator(), "-cpu", "Nehalem", _variant_program(tmp_path), environment=environment
    )
    assert result.returncode == 2
    assert result.stdout.startswith("variant 'avx2' of 'dense' needs cpu features"), result.stderr
    assert "avx2" in result.stdout.partition("missing here: ")[2]


def _emulator() -> str:
    found = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
    if found is None:
        pytest.skip("qemu-x86_64 (Debian: qemu-user) is not installed")
    return found


def _variant_program(folder: Path) -> Path:
    dense = compiled("dense")
    return build("variant.c", folder / "variant", [dense.folder], [dense.files["so"]])


@pytest.mark.parametrize("form", [[], ["--static"]])
def test_pkg_config_finds_it(form: list[str], tmp_path: Path) -> None:
    tool = shutil.which("pkg-config")
    if tool is None:
        pytest.skip("no pkg-config on this machine")
    dense = compiled("dense")
    query = [tool, *form, "--cflags", "--libs", dense.files["pkg-config"]]
    flags = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    source = Path(__file__).with_name("variant.c")
    link = [f"-Wl,-rpath,{dense.folder}", "-o", tmp_path / "program"]
    built = run(compiler(), source, *flags, *link)
    assert built.returncode == 0, built.stderr
    assert run(tmp_path / "program").returncode == 0


def test_cmake_finds_it(tmp_path: Path) -> None:
    tool = shutil.which("cmake")
    if tool is None:
        pytest.skip("no cmake on this machine")
    compiler()
    source = Path(__file__).with_name("variant.c")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(consumer C)\n"
        "find_package(dense REQUIRED)\n"
        f"add_executable(shared {source})\ntarget_link_libraries(shared dense::dense)\n"
        f"add_executable(static {source})\ntarget_link_libraries(static dense::static)\n"
    )
    build_folder = tmp_path / "build"
    configured = run(
        tool, "-S", tmp_path, "-B", build_folder, f"-Ddense_DIR={compiled('dense').folder}"
    )
    assert configured.returncode == 0, configured.stderr
    built = run(tool, "--build", build_folder)
    assert built.returncode == 0, built.stdout + built.stderr
    for name in ("shared", "static"):
        assert run(build_folder / name).returncode == 0
