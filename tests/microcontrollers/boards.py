"""Firmware of compiled models, run on QEMU's boards: inputs are constants, outputs come back."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cuvil.aot.header import c_name
from cuvil.aot.link import linkers
from cuvil.aot.write import Artefact
from tools.foreign import zig_environment

FIRMWARE = Path(__file__).resolve().parents[2] / "examples" / "firmware"
SLACK = 32  # bytes behind each output: where a run finds its size, there is room for the bound
ARM = ["arm-none-eabi-gcc", "-mthumb", "-nostartfiles", "-Wl,--no-warn-rwx-segments"]
ZIG = [sys.executable, "-m", "ziglang", "cc", "-target", "riscv32-freestanding-none"]
SEMIHOSTING = ["-nographic", "-semihosting-config", "enable=on,target=native"]


@dataclass(frozen=True)
class Board:
    """A machine of QEMU's. target, features: to compile for. build: the C compiler's words. files:
    of examples/firmware. run: the emulator's."""

    target: str
    cpu: str
    build: tuple[str, ...]
    files: tuple[str, ...]
    run: tuple[str, ...]
    features: str = ""

    def need(self) -> None:
        """Skips the test where a program is missing."""
        for program in (self.build[0], self.run[0]):
            if shutil.which(program) is None:
                pytest.skip(f"no {program} (tools/setup qemu installs it)")


def _arm(target: str, cpu: str, machine: str, fpu: str = "") -> Board:
    floats = ["-mfloat-abi=hard", f"-mfpu={fpu}"] if fpu else []
    files = ("-T", "cortex_m.ld", "cortex_m.c")
    return Board(
        target, cpu, (*ARM, f"-mcpu={cpu}", *floats), files, ("qemu-system-arm", "-M", machine)
    )


_RISCV = ("-T", "riscv.ld", "riscv.c")
_VIRT = ("qemu-system-riscv32", "-M", "virt", "-bios", "none")
BOARDS = {
    "cortex-m4": _arm("thumbv7em-none-eabihf", "cortex-m4", "mps2-an386", "fpv4-sp-d16"),
    "cortex-m7": _arm("thumbv7em-none-eabihf", "cortex-m7", "mps2-an500", "fpv5-sp-d16"),
    "cortex-m0": _arm("thumbv6m-none-eabi", "cortex-m0", "microbit"),
    "rv32imc": Board(
        "riscv32-unknown-none-elf", "", (*ZIG, "-mcpu=generic_rv32+m+c"), _RISCV, _VIRT
    ),
    "rv32imfc": Board(
        "riscv32-unknown-none-elf", "", (*ZIG, "-mcpu=generic_rv32+m+c"), _RISCV, _VIRT, "+f"
    ),
}


@dataclass(frozen=True)
class Call:
    """A model's one call: artefact, extents of its symbols, inputs by name, results as they are to
    come (their values do not matter), and for which of them the shape is asked for."""

    made: Artefact
    inputs: Mapping[str, np.ndarray]
    outputs: Sequence[np.ndarray]
    extents: Sequence[int] = ()
    shapes: Sequence[bool] = ()


def run_on(board: Board, calls: Sequence[Call], folder: Path) -> list[list[np.ndarray]]:
    """The outputs of each call, all in one program."""
    (folder / "main.c").write_text(_program(calls))
    includes = [f"-I{c.made.folder}" for c in calls]
    archives = [str(c.made.files["a"]) for c in calls]
    files = [w if w.startswith("-") else str(FIRMWARE / w) for w in board.files]
    words = [*board.build, "-Os", "-Wall", "-Wextra", "-Werror", *includes, f"-I{FIRMWARE}"]
    program = folder / "program.elf"
    _checked([*words, *files, str(folder / "main.c"), *archives, "-o", str(program)])
    said = _checked([*board.run, *SEMIHOSTING, "-kernel", str(program)])
    lines = iter(said.split())
    return [[_array(next(lines), out) for out in call.outputs] for call in calls]


def undefined_in_link(archive: Path) -> set[str]:
    """The symbols that a linker misses when it is given an archive and nothing else."""
    linker = next((words for words in linkers() if "ld.lld" in words.command[-1]), None)
    if linker is None:
        pytest.skip("no ld.lld (pip install ziglang)")
    command = [*linker.command, "--whole-archive", str(archive), "--error-limit=0"]
    done = subprocess.run(
        [*command, "-o", str(archive.with_suffix(".elf"))],
        env=zig_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "undefined symbol" in done.stderr or done.returncode == 0, done.stderr
    return set(re.findall(r"undefined symbol: (\S+)", done.stderr))


def _checked(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, env=zig_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command[:4])}: {said}"
    return said


def _array(text: str, like: np.ndarray) -> np.ndarray:
    data = bytes.fromhex(text)
    return np.frombuffer(data, like.dtype).reshape(like.shape)


def _program(calls: Sequence[Call]) -> str:
    headers = [f'#include "{c.made.name}.h"' for c in calls]
    parts = [_calling(i, call) for i, call in enumerate(calls)]
    memory = f"static union {{ {' '.join(_member(c) for c in calls)} }} memory;"
    main = "".join(f"  if (call_{i}()) return {i + 1};\n" for i in range(len(calls)))
    return "\n".join([*headers, _PUT, memory, *parts, f"int main(void) {{\n{main}  return 0;\n}}"])


def _member(call: Call) -> str:
    return f"unsigned char {call.made.name}[{call.made.name.upper()}_MEMORY_BYTES];"


_PUT = """
#include "board.h"
static void put(const void *data, int bytes) {
  for (int i = 0; i < bytes; i++) {
    unsigned char byte = ((const unsigned char *)data)[i];
    char text[3] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15], 0};
    board_put(text);
  }
  board_put("\\n");
}
"""


def _calling(number: int, call: Call) -> str:
    lines, given, taken = [], [f"memory.{call.made.name}", f"sizeof memory.{call.made.name}"], set()
    given += map(str, call.extents)
    for name, array in call.inputs.items():
        word = f"{c_name(name, taken)}_{number}"
        lines.append(_constant(word, array))
        given.append(f"(const void *){word}")
    for i, array in enumerate(call.outputs):
        lines.append(f"static _Alignas(8) unsigned char out_{number}_{i}[{array.nbytes + SLACK}];")
        given.append(f"(void *)out_{number}_{i}")
    for i, asked in enumerate(call.shapes):
        if asked:
            lines.append(f"static int64_t shape_{number}_{i}[8];")
            given.append(f"shape_{number}_{i}")
    puts = [f"  put(out_{number}_{i}, {a.nbytes});" for i, a in enumerate(call.outputs)]
    run = f"  int32_t status = {call.made.name}_inference({', '.join(given)});"
    body = [f"static int call_{number}(void) {{", run, "  if (status) return 1;", *puts]
    return "\n".join([*lines, *body, "  return 0;", "}"])


def _constant(name: str, array: np.ndarray) -> str:
    data = ", ".join(map(str, np.ascontiguousarray(array).tobytes())) or "0"
    return f"static const _Alignas(8) unsigned char {name}[] = {{{data}}};"
