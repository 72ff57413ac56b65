"""Objects merged by `cuvil.codegen.elf_merge`, for machines of 32 and 64 bits."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from cuvil.codegen import elf
from cuvil.codegen.elf_file import REL_TYPES, SYMTAB, read_object
from cuvil.codegen.elf_merge import merge_objects
from cuvil.errors import ArtefactError

TRIPLES = {
    "x86_64-linux-gnu": "",
    "aarch64-linux-gnu": "",
    "riscv64-linux-gnu": "+m,+a,+c",
    "riscv32-unknown-elf": "+m,+c",
    "thumbv7em-none-unknown-eabihf": "",
    "thumbv6m-none-unknown-eabi": "",
}
CALLER = """
@table = internal constant [2 x i32] [i32 3, i32 4]
declare hidden i32 @second(ptr)
define i32 @first(i32 %i) nounwind {
  %p = getelementptr i32, ptr @table, i32 %i
  %r = call i32 @second(ptr %p)
  ret i32 %r
}
"""
CALLED = """
@table = internal constant i32 5
define hidden i32 @second(ptr %p) nounwind {
  %v = load i32, ptr %p
  %w = load volatile i32, ptr @table
  %r = add i32 %v, %w
  ret i32 %r
}
"""


def compiled(ir: str, triple: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(reloc="pic", codemodel="small", features=TRIPLES[triple])
    return machine.emit_object(llvm.parse_assembly(f'target triple = "{triple}"\n{ir}'))


@pytest.mark.parametrize("triple", TRIPLES)
def test_two_units_become_one_object(tmp_path: Path, triple: str) -> None:
    path = tmp_path / "whole.o"
    parts = [compiled(ir, triple) for ir in (CALLER, CALLED)]
    merge_objects(path, parts, keep={"first"}.__contains__)
    whole = path.read_bytes()
    assert elf.undefined_symbols(whole) == []
    assert elf.defined_globals(whole) == ["first"]
    assert elf.machine_of(whole) == elf.machine_of(parts[0])
    assert relocations(whole) == sorted(relocations(parts[0]) + relocations(parts[1]))


def relocations(data: bytes) -> list[tuple[str, int]]:
    """(name of what is referred to, type) of each relocation of code."""
    source = read_object(data)
    table = source.find(SYMTAB)
    assert table is not None
    symbols, found = source.symbols(table), []
    for section in source.sections:
        if section.type in REL_TYPES and source.sections[section.info].name.startswith(".text"):
            rows = source.machine.format.relocations(section.data(), REL_TYPES[section.type])
            for _, number, kind, _ in rows:
                symbol = symbols[number]
                found.append((symbol.name or source.sections[symbol.section].name, kind))
    return sorted(found)


@pytest.mark.skipif(not find_spec("ziglang"), reason="no ziglang, whose linker serves every target")
@pytest.mark.parametrize("triple", TRIPLES)
def test_a_linker_takes_it(tmp_path: Path, triple: str) -> None:
    package = find_spec("ziglang")
    assert package is not None and package.origin is not None
    merge_objects(
        tmp_path / "whole.o",
        [compiled(ir, triple) for ir in (CALLER, CALLED)],
        keep={"first"}.__contains__,
    )
    linker = [Path(package.origin).with_name("zig"), "ld.lld", "-e", "first", "--no-undefined"]
    command = [*linker, "--fatal-warnings", "-o", "program", "whole.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_objects_of_two_machines_are_refused(tmp_path: Path) -> None:
    parts = [compiled(CALLER, "riscv32-unknown-elf"), compiled(CALLED, "riscv64-linux-gnu")]
    with pytest.raises(ArtefactError, match="one machine"):
        merge_objects(tmp_path / "whole.o", parts, keep=bool)
