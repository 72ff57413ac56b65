"""Compiles the C runtime to LLVM bitcode: `build_bitcode.py [--source FILE] <triple> <out_dir>`.

Writes `<out_dir>/cuvil_runtime.<triple>.bc`, one module that a compiled model links in and
internalises. The triple is LLVM's (`aarch64-unknown-linux-gnu`) or without vendor; one without an
operating system (`thumbv6m-none-eabi`) gives the embedded runtime. The same sources give the same
bytes. With --source it compiles a backend's C file to `<out_dir>/<its name>.<triple>.bc` instead.
Needs `ziglang`, whose clang must not be newer than llvmlite's LLVM.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUNTIME = Path(__file__).resolve().parents[1] / "runtime_c"
UNITY = RUNTIME / "src" / "unity.c"
FLAGS = [
    "-std=c11",
    "-O2",
    "-g0",
    "-fPIC",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-sanitize=all",
    "-fno-builtin-bcmp",  # LLVM would call it in place of memcmp; objects import no such function
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Iinclude",
]
# There are no headers of Android's C library here. Of what the runtime takes from headers, musl's
# differ in one number, which cpu_count_linux.c knows.
ANDROID = ["-D__ANDROID__"]
MACOS = ["-D_FORTIFY_SOURCE=0"]  # checked copies are not for objects that import few functions
FREESTANDING = ["-DCUVIL_FREESTANDING", "-Ifreestanding", "-ffreestanding", "-Os"]
FREESTANDING += ["-fshort-enums"]  # as compilers for such targets do
OPERATING_SYSTEMS = ("linux", "macos", "windows")
# LLVM's names of architectures that Zig has as a cpu of another: the least that they stand for.
ARCHITECTURES = {
    "arm64": ("aarch64", ""),
    "armv7": ("arm", "generic+v7a-neon-d32-vfp3+vfp3d16"),
    "thumbv6m": ("thumb", "cortex_m0"),
    "thumbv7em": ("thumb", "cortex_m4"),
    "riscv32": ("riscv32", "generic_rv32+m+c"),
}


def zig_target(triple: str) -> tuple[list[str], list[str]]:
    """Zig's options for an LLVM triple, and the flags that go with it."""
    parts = [part for part in triple.split("-") if part not in ("unknown", "pc", "apple")]
    parts[0], cpu = ARCHITECTURES.get(parts[0], (parts[0], ""))
    own: list[str] = []
    if parts[-1].startswith("android"):
        parts[-1], own = "musl", ANDROID
    elif parts[-1].startswith("macos"):
        own = MACOS
    elif not any(part.startswith(OPERATING_SYSTEMS) for part in parts):
        abi = parts[-1] if parts[-1].startswith("eabi") else "none"
        parts, own = [parts[0], "freestanding", abi], FREESTANDING
    return ["-target", "-".join(parts), *([f"-mcpu={cpu}"] if cpu else [])], own


def bitcode_path(triple: str, out_dir: Path, source: Path = UNITY) -> Path:
    """Where the module of a triple is written."""
    stem = "cuvil_runtime" if source == UNITY else source.stem
    return out_dir / f"{stem}.{triple}.bc"


def build(triple: str, out_dir: Path, source: Path = UNITY) -> Path:
    """Compiles the runtime or another file; returns the module's path. Raises CalledProcessError on
    failure."""
    target, own = zig_target(triple)
    output = bitcode_path(triple, out_dir.resolve(), source)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        names = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
        subprocess.run(
            [sys.executable, "-m", "ziglang", "cc", *target, *FLAGS, *own]
            + ["-emit-llvm", "-c", str(source.absolute()), "-o", str(output)],
            cwd=RUNTIME,
            env={**os.environ, **dict.fromkeys(names, cache)},
            check=True,
        )
    return output


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=UNITY)
    parser.add_argument("triple")
    parser.add_argument("out_dir", type=Path)
    arguments = parser.parse_args()
    print(build(arguments.triple, arguments.out_dir, arguments.source))


if __name__ == "__main__":
    main()
