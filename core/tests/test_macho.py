"""Mach-O objects: merged, with data, as an archive; what they define and ask for."""

import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from cuvil.codegen import objects
from cuvil.codegen.elf_archive import read_archive
from cuvil.codegen.macho_file import read_object
from cuvil.errors import ArtefactError

TRIPLE = "arm64-apple-macosx11.0.0"
CALLER = """
@table = internal constant [2 x i32] [i32 3, i32 4]
@places = constant [2 x ptr] [ptr @table, ptr @first]
@weights = external hidden constant i8
declare hidden i32 @second(ptr)
declare ptr @memset(ptr, i32, i64)
define i32 @first(i32 %i) nounwind {
  %p = getelementptr i32, ptr @table, i32 %i
  %r = call i32 @second(ptr %p)
  call ptr @memset(ptr @weights, i32 %r, i64 4)
  ret i32 %r
}
"""
CALLED = """
@table = internal constant i32 5
@counter = internal global i32 0
define hidden i32 @second(ptr %p) nounwind {
  %v = load i32, ptr %p
  %w = load volatile i32, ptr @table
  store volatile i32 %w, ptr @counter
  %r = add i32 %v, %w
  ret i32 %r
}
"""


def compiled(ir: str, triple: str = TRIPLE) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="small")
    module = llvm.parse_assembly(f'target triple = "{triple}"\n{ir}')
    module.data_layout = str(machine.target_data)
    return machine.emit_object(module)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    data = objects.Data("weights", iter([b"ab" * 50, b"c"]), 101)
    parts = [compiled(CALLER), compiled(CALLED)]
    objects.join(tmp_path / "whole.o", parts, {"places"}.__contains__, {"first": "own"}, [data])
    return tmp_path / "whole.o"


def test_two_units_become_one_object(whole: Path) -> None:
    data = whole.read_bytes()
    assert objects.undefined_symbols(data) == ["memset"]
    assert objects.defined_globals(data) == ["own", "places", "weights"]
    assert objects.visible_globals(data) == ["own", "places"]
    names = [name for name, _ in objects.functions(data)[1]]
    assert names == ["own", "second"]


def test_sections_are_joined_and_hold_what_they_held(whole: Path) -> None:
    found = read_object(whole.read_bytes())
    names = [(s.segment, s.name) for s in found.sections]
    assert len(set(names)) == len(names) and found.sections[-1].name == "__bss"
    constants = next(s for s in found.sections if s.name == "__const" and s.segment == "__TEXT")
    held = b"".join(constants.chunks)
    for name, bytes_of in {"_weights": b"ab" * 50 + b"c", "_table": b"\3\0\0\0\4\0\0\0"}.items():
        symbol = next(s for s in found.symbols if s.name == name)
        start = symbol.value - constants.address
        assert held[start : start + len(bytes_of)] == bytes_of
    weights = next(s for s in found.symbols if s.name == "_weights")
    assert weights.value % 64 == 0


def test_every_place_to_be_filled_in_still_means_the_same(whole: Path) -> None:
    def places(data: bytes) -> list[tuple[str, int]]:
        found = read_object(data)
        entries = [e for s in found.sections for e in s.relocations]
        return sorted((found.symbols[e.number].name, e.kind) for e in entries)

    parts = places(compiled(CALLER)) + places(compiled(CALLED))
    assert places(whole.read_bytes()) == sorted(
        (name.replace("_first", "_own"), kind) for name, kind in parts
    )


def test_an_archive_tells_of_its_symbols(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "libwhole.a"
    objects.write_archive(path, [objects.Member("whole.o", whole)])
    assert [objects.defined_globals(m) for m in read_archive(path.read_bytes())] == [
        ["own", "places", "weights"]
    ]
    assert b"_own\0" in path.read_bytes()[:200]


def test_llvm_reads_what_was_written(whole: Path, tmp_path: Path) -> None:
    program = shutil.which("llvm-nm-22") or shutil.which("llvm-nm")
    if program is None:
        pytest.skip("llvm-nm (Debian: llvm-22) is not installed")
    path = tmp_path / "libwhole.a"
    objects.write_archive(path, [objects.Member("whole.o", whole)])
    command = [program, "--print-armap", "--extern-only", "--defined-only", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "_own in whole.o" in text and " T _own" in text and " S _places" in text


def test_objects_of_two_machines_are_refused(tmp_path: Path) -> None:
    parts = [compiled(CALLER), compiled(CALLED, "x86_64-apple-macosx11.0.0")]
    with pytest.raises(ArtefactError, match="one machine"):
        objects.join(tmp_path / "whole.o", parts, bool, {})


def test_a_symbol_has_one_definition(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="'_second' is defined twice"):
        objects.join(tmp_path / "whole.o", [compiled(CALLED)] * 2, bool, {})


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ArtefactError, match="damaged Mach-O"):
        objects.defined_globals(compiled(CALLED)[:200])
