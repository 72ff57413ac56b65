"""examples/firmware: what its README says, done."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.foreign import zig_environment

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "firmware"
CUVIL = 'exec "{0}" -c "from cuvil.cli import main; raise SystemExit(main())" "$@"'
COMMANDS = {"cuvil": CUVIL, "python": 'exec "{0}" "$@"'}


def blocks() -> list[str]:
    """The README's commands: for a Cortex-M4, a Cortex-M0, a RISC-V; speech on a Cortex-M7."""
    return re.findall(r"^```sh\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.S | re.M)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its model, and the commands in bin/."""
    place = tmp_path_factory.mktemp("firmware") / "firmware"
    shutil.copytree(EXAMPLE, place)
    (place / "bin").mkdir()
    for name, text in COMMANDS.items():
        command = place / "bin" / name
        command.write_text(f"#!/bin/sh\n{text.format(sys.executable)}\n")
        command.chmod(0o755)
    subprocess.run([sys.executable, "make_model.py"], cwd=place, check=True)
    return place


@pytest.mark.parametrize(
    ("number", "programs"),
    [
        (0, ("arm-none-eabi-gcc", "qemu-system-arm")),
        (1, ("arm-none-eabi-gcc", "qemu-system-arm")),
        (2, ("qemu-system-riscv32",)),
        (3, ("arm-none-eabi-gcc", "qemu-system-arm")),
    ],
)
def test_the_commands(number: int, programs: tuple[str, ...], folder: Path) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program} (tools/setup qemu installs it)")
    env = {**zig_environment(), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    commands = blocks()[number].replace("python make_model.py\n", "")
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    right = re.search(r"^(\d+) of 40 (right|as ONNX)", done.stdout + done.stderr, re.M)
    assert right and int(right[1]) >= (38 if right[2] == "right" else 40)
