"""An object to a shared library: any ELF linker will do, no compiler and no C library takes part.

The C library is a stand-in made here (its name and the functions that are used), so the result is
the same on every machine and for every target, and asks for no version of any function.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from cuvil.codegen.elf_file import (
    ALLOC,
    LOCAL,
    PROGBITS,
    STRTAB,
    SYMTAB,
    Machine,
    Object,
    Section,
    Symbol,
    write_object,
)
from cuvil.errors import CompileError

_EXECUTABLE, _FUNCTION = 4, 2  # section flag, symbol type


@dataclass(frozen=True)
class Linker:
    """A program that links. wrap: what a compiler driver wants before options of its linker."""

    name: str
    command: tuple[str, ...]
    wrap: str = ""

    def call(
        self, options: Sequence[Sequence[str]], files: Sequence[str], hosted: bool = False
    ) -> None:
        """Runs it; each option is a list of words. hosted: with the driver's own C library. Raises
        CompileError with what it said."""
        words = [word for option in options for word in option]
        extra = ["-shared"]
        if self.wrap:
            words = [self.wrap + ",".join(option) for option in options]
            extra += [] if hosted else ["-nostdlib"]
        result = subprocess.run(
            [*self.command, *extra, *words, *files], capture_output=True, text=True, check=False
        )
        if result.returncode:
            lines = (result.stderr or result.stdout).strip().splitlines() or ["no message"]
            said = [line for line in lines if "undefined" in line or "error:" in line] or lines
            raise CompileError(f"{self.name} failed ({result.returncode}): {said[0]}")


@dataclass(frozen=True)
class Extra:
    """What users bring for custom operators: objects and archives that become a part of the
    library, and shared libraries, which are found beside it when it is loaded."""

    objects: tuple[Path, ...] = ()
    libraries: tuple[Path, ...] = ()


def linkers() -> list[Linker]:
    """The linkers of this machine, the one that serves most targets first."""
    found = []
    package = find_spec("ziglang")
    if package and package.origin:
        found.append(Linker("ziglang", (str(Path(package.origin).with_name("zig")), "ld.lld")))
    for name in ("ld.lld", "ld"):
        path = shutil.which(name)
        if path:
            found.append(Linker(name, (path,)))
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            found.append(Linker(name, (path,), "-Wl,"))
    return found


def link_shared(
    source: Path,
    output: Path,
    *,
    machine: Machine,
    emulation: str,
    libraries: Sequence[str],
    imported: Sequence[str],
    extra: Extra = Extra(),
) -> None:
    """Links the object `source` to `output`, which is also its soname.

    emulation: the linker's name of the target's format. libraries: sonames of the system's
    libraries that hold `imported`. Objects of users may need all of a C library: then a compiler
    driver links, and the library asks for that machine's own. Raises CompileError when there is no
    linker, or none manages.
    """
    found = [linker for linker in linkers() if linker.wrap or not extra.objects]
    if not found and extra.objects:
        raise CompileError(
            f"{output.name} needs a C compiler to be linked with {extra.objects[0].name}: install "
            "one, or give .native a shared library"
        )
    if not found:
        raise CompileError(
            f"{output.name} needs a linker and there is none: pip install 'cuvil[link]' brings "
            "one; an object or archive (--emit o, --emit a) needs none"
        )
    failures = []
    for linker in found:
        try:
            _link(linker, source, output, machine, emulation, libraries, imported, extra)
            return
        except CompileError as error:
            failures.append(str(error))
    raise CompileError(
        f"no linker could make {output.name} ({'; '.join(failures)}): pip install 'cuvil[link]' "
        "brings one for every target; an object or archive (--emit o, --emit a) needs none"
    )


def _link(
    linker: Linker,
    source: Path,
    output: Path,
    machine: Machine,
    emulation: str,
    libraries: Sequence[str],
    imported: Sequence[str],
    extra: Extra,
) -> None:
    with tempfile.TemporaryDirectory(prefix="cuvil-link-") as scratch:
        stand_ins = []
        for i, soname in enumerate(() if extra.objects else libraries):
            names = tuple(imported) if i == 0 else ()
            stand_ins.append(str(Path(scratch, f"{i}.so")))
            Path(stand_ins[-1]).write_bytes(_stand_in(linker, machine, emulation, soname, names))
        # Threads of the runtime may outlive a dlclose, so their code must too.
        keywords = [
            "now",
            "relro",
            "noexecstack",
            "nodelete",
            "text",
            *(["defs"] * bool(libraries)),
        ]
        options = [["-Bsymbolic"], ["--no-as-needed"], *(["-z", word] for word in keywords)]
        files = [str(source), *map(str, extra.objects), *stand_ins]
        for library in extra.libraries:
            files += [f"-L{library.parent}", f"-l:{library.name}"]
        if extra.libraries:
            options.append(["-rpath", "$ORIGIN"])
        if extra.objects:
            options.append([f"--version-script={_only_own(Path(scratch, 'names'), output)}"])
            files.append("-lm")
        _call(linker, emulation, output.name, str(output), files, options, bool(extra.objects))


def _only_own(script: Path, output: Path) -> Path:
    """A script that hides all but the model's own names, which begin with the library's."""
    name = output.stem.removeprefix("lib")
    script.write_text(f"{{ global: {name}_*; local: *; }};\n", encoding="utf-8")
    return script


def _call(
    linker: Linker,
    emulation: str,
    soname: str,
    output: str,
    files: Sequence[str],
    options: Sequence[Sequence[str]],
    hosted: bool = False,
) -> None:
    common = [["-m", emulation]] if emulation else []
    common += [["--hash-style=gnu"], ["--build-id=none"], [f"--soname={soname}"]]
    linker.call([*common, *options], ["-o", output, *files], hosted)


@lru_cache(maxsize=16)
def _stand_in(
    linker: Linker, machine: Machine, emulation: str, soname: str, names: tuple[str, ...]
) -> bytes:
    """A library `soname` with these functions."""
    with tempfile.TemporaryDirectory(prefix="cuvil-link-") as scratch:
        source, library = Path(scratch, "source.o"), Path(scratch, "library.so")
        write_stand_in(source, machine, names)
        _call(linker, emulation, soname, str(library), [str(source)], [])
        return library.read_bytes()


def write_stand_in(path: Path, machine: Machine, names: Sequence[str]) -> None:
    """Writes an object that defines functions of these names, with nothing in them."""
    table = Section(".symtab", SYMTAB, link=3)
    code = Section(".text", PROGBITS, ALLOC | _EXECUTABLE, align=16)
    code.replace(bytes(16))
    sections = [Section("", 0, align=0), code, table, Section(".strtab", STRTAB)]
    sections += [Section(".shstrtab", STRTAB), Section(".note.GNU-stack", PROGBITS)]
    source = Object(machine, names=4, sections=sections)
    symbols = [Symbol(name, type=_FUNCTION, section=1) for name in names]
    source.set_symbols(table, [Symbol("", LOCAL), *symbols])
    write_object(path, source)
