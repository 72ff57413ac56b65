"""Objects and archives for macOS: what they hold and ask for, and that a linker takes them."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.codegen import objects
from cuvil.codegen.elf_archive import read_archive
from cuvil.codegen.macho_file import read_object
from cuvil.errors import OptionError
from cuvil_runtime import include_dir
from tools.foreign import zig_environment
from tools.foreign_cases import cases, disassembler, undeclared

TRIPLE = "arm64-apple-macos"
CODES = next(case for case in cases() if case.name == "codes")
M1 = "+v8.4a,+fp16fml"
LINUX = {"syscall", "getauxval", "dl_iterate_phdr", "sched_getaffinity", "sched_getcpu"}
PROGRAM = """#include "codes.h"
int main(void) {
  static unsigned char x[19 * 36], y[19 * 24];
  return codes_inference(19, x, y);
}
"""


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    folder = tmp_path_factory.mktemp("macos")
    return compile_to_folder(CODES.proto, folder, CODES.options_for(TRIPLE), emit=("o", "a"))


def test_an_object_defines_its_models_names_and_asks_for_few(artefact: Artefact) -> None:
    data = artefact.files["o"].read_bytes()
    assert {"codes_inference", "codes_open", "codes_run"} <= set(objects.visible_globals(data))
    assert all(name.startswith("codes") for name in objects.defined_globals(data))
    needed = set(objects.undefined_symbols(data))
    assert {"pthread_create", "pthread_cond_wait", "sysctlbyname"} <= needed
    assert not needed & LINUX and len(needed) < 40
    assert [objects.defined_globals(m) for m in read_archive(artefact.files["a"].read_bytes())] == [
        objects.defined_globals(data)
    ]


def test_weights_and_tables_are_constants(artefact: Artefact) -> None:
    found = read_object(artefact.files["o"].read_bytes())
    sections = {s.name: found.sections[s.section - 1] for s in found.symbols if s.section}
    weights, table = sections["_codes.weights"], sections["_codes_artefact"]
    assert (weights.segment, weights.name) == ("__TEXT", "__const")
    assert (table.segment, table.name) == ("__DATA", "__const")


def test_every_build_is_there(artefact: Artefact) -> None:
    assert [v["name"] for v in artefact.manifest["variants"]] == ["i8mm_bf16", "dotprod", "neon"]
    assert all(size > 0 for size in artefact.manifest["code_bytes"].values())


def test_it_has_the_first_cpus_instructions_but_for_the_build_that_requires_others(
    artefact: Artefact,
) -> None:
    if disassembler() is None:
        pytest.skip("llvm-objdump (Debian: llvm-22) is not installed")
    assert undeclared(artefact.files["o"], f"{M1},+i8mm,+bf16") == []
    assert len(undeclared(artefact.files["o"], M1)) > 9


def test_the_default_is_an_archive_and_a_library_is_refused(tmp_path: Path) -> None:
    options = CODES.options_for(TRIPLE)
    with pytest.raises(OptionError, match=r"macos: there are no shared libraries: emit an"):
        compile_to_folder(CODES.proto, tmp_path, options, emit=("so",))


@pytest.mark.skipif(not find_spec("ziglang"), reason="no ziglang, which links for macOS")
def test_a_linker_makes_a_program_of_it(artefact: Artefact, tmp_path: Path) -> None:
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-macos", str(source)]
    command += [str(artefact.files["a"]), f"-I{artefact.folder}", f"-I{include_dir()}"]
    done = subprocess.run(
        [*command, "-o", str(program)], env=zig_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert program.read_bytes()[12:16] == b"\2\0\0\0"  # MH_EXECUTE
