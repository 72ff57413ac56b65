"""The runtime as bitcode: LLVM reads it, it needs libc only, and it is small as machine code."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 50_000
LIBC = {"malloc", "posix_memalign", "free", "memcpy", "memset", "memcmp", "bcmp", "strlen"}
LIBC |= {"strcmp", "strncmp", "strchr", "strrchr", "strstr", "getenv", "getpid", "syscall"}
LIBC |= {"open", "close", "read", "readlink", "lseek", "mmap", "munmap", "madvise", "sysconf"}
LIBC |= {"pthread_create", "pthread_join", "pthread_sigmask", "sigfillset", "clock_gettime"}
LIBC |= {"sched_getaffinity", "sched_getcpu", "sched_setaffinity", "sched_yield"}
LIBC |= {"__sched_cpucount", "dl_iterate_phdr"}

llvm = pytest.importorskip("llvmlite.binding")
pytest.importorskip("ziglang")


def load_tool():
    spec = importlib.util.spec_from_file_location("bitcode", ROOT / "tools/build_bitcode.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded_bytes(code: bytes) -> int:
    sections = llvm.ObjectFileRef.from_data(code).sections()
    kinds = (".text", ".rodata", ".data", ".bss")
    return sum(s.size() for s in sections if (s.name() or b"").decode().startswith(kinds))


@pytest.mark.parametrize(
    ("triple", "features"),
    [("x86_64-linux-gnu", ""), ("aarch64-linux-gnu", ""), ("riscv64-linux-gnu", "+m,+a,+f,+d,+c")],
)
def test_links_and_is_small(triple: str, features: str, tmp_path: Path) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_bitcode(load_tool().build(triple, tmp_path).read_bytes())
    module.verify()
    needed = {f.name for f in module.functions if f.is_declaration}
    assert {name for name in needed if not name.startswith("llvm.")} <= LIBC
    target = llvm.Target.from_triple(module.triple)
    machine = target.create_target_machine(reloc="pic", features=features)
    assert 0 < loaded_bytes(machine.emit_object(module)) < LIMIT


def test_same_bytes_twice(tmp_path: Path) -> None:
    build = load_tool().build
    first, second = (build("x86_64-linux-gnu", tmp_path / name).read_bytes() for name in "ab")
    assert first == second


SMALL = {"thumbv7em-none-eabihf": "", "thumbv6m-none-eabi": "", "riscv32-unknown-none-elf": "+m,+c"}
LEAST = 8_000  # bytes of all there is, functions on strings too; models take what they use


@pytest.mark.parametrize("triple", SMALL)
def test_freestanding_needs_memory_functions_only(triple: str, tmp_path: Path) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_bitcode(load_tool().build(triple, tmp_path).read_bytes())
    needed = {f.name for f in module.functions if f.is_declaration}
    assert {n for n in needed if not n.startswith("llvm.")} <= {"memcpy", "memset", "memcmp"}
    target = llvm.Target.from_triple(module.triple)
    machine = target.create_target_machine(reloc="static", features=SMALL[triple])
    assert 0 < loaded_bytes(machine.emit_object(module)) < LEAST
