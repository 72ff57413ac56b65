"""examples/c, compiled for a kind of machine; compilers for it as single programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuvil.aot.write import compile_to_folder
from cuvil.options import Options
from tools.foreign import Machine, zig_environment

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "c"
FOREIGN = Machine("aarch64-linux-gnu")
SAID = {
    "simple": ["it is a 7"],
    "full": ["picture 0: 1", "picture 1: 5", "picture 0: 1"],
    "wrapped": ["picture 0: 1", "picture 1: 5", "input 'pictures': dim 1 is 10, expected 15"],
}
"""What the programs print, but for names of variants and how sure the model is."""


@dataclass(frozen=True)
class Consumer:
    """A copy of the example with the compiled model in build/. machine: None is this one."""

    folder: Path
    machine: Machine | None

    def call(self, *words: str | Path, **environment: str) -> str:
        """What a tool says; the test fails where it does."""
        env = {**os.environ, **environment}
        done = subprocess.run(
            words, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def check(self, place: Path, names: Sequence[str] = tuple(SAID)) -> None:
        """The programs of that folder print what they should, on their own kind of machine."""
        for name in names:
            words = self.machine.command(place / name) if self.machine else [place / name]
            lines = [line.partition(", sure")[0] for line in self.call(*words).splitlines()]
            assert [line for line in lines if not line.startswith("variant ")] == SAID[name]

    def compiler(self, language: str) -> Path:
        """One program that compiles "c" or "c++" for the machine."""
        zig = {"c": "cc", "c++": "c++"}[language]
        if self.machine is None:
            return Path(str(shutil.which(zig)))
        script, cache = self.folder / f"compile-{zig}", zig_environment()["ZIG_GLOBAL_CACHE_DIR"]
        script.write_text(
            f'#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR="{cache}" ZIG_LOCAL_CACHE_DIR="{cache}"\n'
            f'exec "{sys.executable}" -m ziglang {zig} -target {self.machine.system} "$@"\n'
        )
        script.chmod(0o755)
        return script


def needs(*tools: str) -> None:
    """Skips the test where a program is missing."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} on this machine")


def consumer(folder: Path, machine: Machine | None) -> Consumer:
    """The example, its model compiled for that machine; skips where it could not be used."""
    if machine and (missing := machine.lacking()):
        pytest.skip(missing)
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    subprocess.run([sys.executable, folder / "make_model.py", folder], check=True)
    options = Options(target=machine.triple if machine else "cpu")
    compile_to_folder(folder / "digits.onnx", folder / "build", options, emit=("so", "a"))
    return Consumer(folder, machine)
