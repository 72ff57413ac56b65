"""Objects, notes and archives written by `cuvil.codegen.elf`, read back by the system's tools."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from cuvil.codegen import elf
from cuvil.codegen.elf_archive import Member, write_archive
from cuvil.errors import ArtefactError

needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (cc) to link with")
needs_readelf = pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf to ask")

KERNEL = """
target triple = "{triple}"
@weights = external hidden global [0 x i8]
@other = external global i32
define i32 @model_at(i64 %i) {{
  %p = getelementptr i8, ptr @weights, i64 %i
  %v = load i8, ptr %p
  %r = zext i8 %v to i32
  ret i32 %r
}}
define ptr @model_weights() {{
  ret ptr @weights
}}
define hidden i32 @model_hidden() {{
  %v = load i32, ptr @other
  ret i32 %v
}}
"""

MAIN = """
#include <stdint.h>
#include <stdio.h>
int model_at(int64_t); const char *model_weights(void); int other = 7;
int main(void) {
  printf("%d %d %d %d\\n", model_at(0), model_at(1), model_at(999999),
         (int)((uintptr_t)model_weights() % 64));
}
"""

WEIGHTS = b"\x05" + bytes(499_999) + b"\x01" * 499_999 + b"\x09"


def compile_ir(triple: str | None = None) -> bytes:
    """The object LLVM makes of KERNEL, for this machine by default."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = triple or llvm.get_default_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="small")
    return machine.emit_object(llvm.parse_assembly(KERNEL.format(triple=triple)))


def pieces(data: bytes, size: int = 70_001):
    """`data` cut up, as a generator that runs once."""
    yield from (memoryview(data)[i : i + size] for i in range(0, len(data), size))


def run_with(tmp_path: Path, *inputs: Path, flags: tuple[str, ...] = ()) -> str:
    main = tmp_path / "main.c"
    main.write_text(MAIN)
    program = tmp_path / "program"
    command = ["cc", "-o", program, main, *inputs, *flags]
    linked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert linked.returncode == 0, linked.stderr
    assert "warning" not in linked.stderr
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def complaints(path: Path) -> str:
    done = subprocess.run(["readelf", "-aW", path], capture_output=True, text=True, check=True)
    return done.stderr + "".join(s for s in done.stdout.splitlines() if "rror" in s)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.o"
    path.write_bytes(compile_ir())
    return path


@pytest.fixture
def weights(tmp_path: Path, kernel: Path) -> Path:
    path = tmp_path / "weights.o"
    machine = elf.machine_of(kernel.read_bytes())
    elf.write_weights_object(path, "weights", pieces(WEIGHTS), len(WEIGHTS), machine)
    return path


@needs_cc
def test_a_weights_object_links_beside_the_code(tmp_path, kernel, weights):
    assert run_with(tmp_path, kernel, weights) == "5 0 9 0\n"


@needs_cc
def test_weights_appended_to_the_code_make_one_object(tmp_path, kernel):
    whole = tmp_path / "whole.o"
    data = elf.Data("weights", pieces(WEIGHTS), len(WEIGHTS))
    elf.extend_object(whole, kernel.read_bytes(), data=[data], notes=[elf.Note(1, b"model")])
    assert run_with(tmp_path, whole) == "5 0 9 0\n"
    assert elf.undefined_symbols(whole.read_bytes()) == ["other"]


@needs_cc
def test_a_static_archive_links(tmp_path, kernel, weights):
    archive = tmp_path / "libmodel.a"
    members = [Member("kernel.o", kernel.read_bytes()), Member("model.weights.of.bert.o", weights)]
    write_archive(archive, members)
    assert run_with(tmp_path, archive) == "5 0 9 0\n"
    first = archive.read_bytes()
    write_archive(archive, members)
    assert archive.read_bytes() == first


@needs_cc
@needs_readelf
def test_a_shared_library_exports_no_weights_and_keeps_the_note(tmp_path, kernel):
    whole, library = tmp_path / "whole.o", tmp_path / "libmodel.so"
    data = elf.Data("weights", [WEIGHTS], len(WEIGHTS))
    note = elf.Note(1, b"model_entry\0")
    elf.extend_object(whole, kernel.read_bytes(), data=[data], notes=[note, elf.Note(2, b"")])
    subprocess.run(["cc", "-shared", "-o", library, whole, "-nostdlib"], check=True)
    assert elf.defined_globals(library.read_bytes()) == ["model_at", "model_weights"]
    assert elf.read_notes(library.read_bytes()) == [note, elf.Note(2, b"")]
    assert elf.section_sizes(library.read_bytes())[".rodata"] >= len(WEIGHTS)
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True)
    assert "cuvil" in notes.stdout


@needs_readelf
def test_readelf_finds_nothing_wrong(tmp_path, kernel, weights):
    whole = tmp_path / "whole.o"
    data = elf.Data("weights", [WEIGHTS], len(WEIGHTS))
    elf.extend_object(whole, kernel.read_bytes(), data=[data], notes=[elf.Note(1, b"abc")])
    assert complaints(weights) == ""
    assert complaints(whole) == ""


def test_what_the_reader_tells(kernel, weights):
    code, data = kernel.read_bytes(), weights.read_bytes()
    assert elf.undefined_symbols(code) == ["other", "weights"]
    assert elf.defined_globals(code) == ["model_at", "model_hidden", "model_weights"]
    assert elf.defined_globals(code, exported=True) == ["model_at", "model_weights"]
    assert elf.section_sizes(code)[".text"] > 0
    assert elf.defined_globals(data) == ["weights"]
    assert elf.defined_globals(data, exported=True) == []
    assert elf.section_sizes(data)[".rodata.weights"] == len(WEIGHTS)
    assert WEIGHTS in data


MACHINES = ("aarch64-linux-gnu", "riscv64-linux-gnu", "x86_64-linux-gnu")
SMALL = ("thumbv7em-none-unknown-eabihf", "thumbv6m-none-unknown-eabi", "riscv32-unknown-elf")


@pytest.mark.parametrize("triple", [*MACHINES, *SMALL])
@needs_readelf
def test_every_machine_is_copied_not_known(tmp_path, triple):
    code = compile_ir(triple)
    path = tmp_path / "weights.o"
    elf.write_weights_object(path, "weights", [b"abcd"], 4, elf.machine_of(code))
    assert elf.machine_of(path.read_bytes()) == elf.machine_of(code)
    assert complaints(path) == ""


def test_chunks_that_do_not_add_up_leave_no_file(tmp_path, kernel):
    path = tmp_path / "weights.o"
    machine = elf.machine_of(kernel.read_bytes())
    for total in (3, 5):
        with pytest.raises(ValueError, match=f"of {total} bytes was given 4"):
            elf.write_weights_object(path, "weights", [b"ab", b"cd"], total, machine)
        assert not path.exists()


def test_a_symbol_is_not_defined_twice(tmp_path, weights):
    with pytest.raises(ValueError, match="defines weights already"):
        elf.extend_object(
            tmp_path / "x.o", weights.read_bytes(), data=[elf.Data("weights", [b"a"], 1)]
        )


def test_extending_drops_nothing(tmp_path, kernel):
    code = kernel.read_bytes()
    once, twice = tmp_path / "once.o", tmp_path / "twice.o"
    elf.extend_object(once, code)
    elf.extend_object(twice, once.read_bytes())
    assert once.read_bytes() == twice.read_bytes()
    before, after = elf.section_sizes(code), elf.section_sizes(once.read_bytes())
    tables = {".strtab", ".shstrtab"}
    assert {k: v for k, v in before.items() if k not in tables} == {
        k: v for k, v in after.items() if k not in tables
    }
    assert elf.defined_globals(once.read_bytes()) == elf.defined_globals(code)


def test_damaged_files_give_artefact_errors(kernel):
    code = kernel.read_bytes()
    cases = [code[:n] for n in range(0, len(code), 37)]
    for i in range(400):
        digest = hashlib.blake2b(i.to_bytes(4, "little")).digest()
        broken = bytearray(code)
        broken[int.from_bytes(digest[:4], "little") % len(code)] ^= digest[4] or 1
        cases.append(bytes(broken))
    for case in cases:
        for ask in (elf.undefined_symbols, elf.defined_globals, elf.section_sizes, elf.read_notes):
            try:
                ask(case)
            except ArtefactError as error:
                assert "ELF" in str(error)


def test_archive_members_are_checked(tmp_path):
    with pytest.raises(ValueError, match="cannot name"):
        write_archive(tmp_path / "x.a", [Member("a/b.o", b"")])
    with pytest.raises(ArtefactError, match="ELF"):
        write_archive(tmp_path / "x.a", [Member("b.o", b"text")])
    assert not (tmp_path / "x.a").exists()
