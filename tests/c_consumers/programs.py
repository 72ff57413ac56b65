"""Compiles and runs C and C++ programs that use compiled models."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")


def compiler(name: str = "cc") -> str:
    """The path of a C or C++ compiler; skips the test where there is none."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} on this machine")
    return path


def build(
    source: str | Path,
    output: Path,
    folders: Sequence[Path] = (),
    link: Sequence[str | Path] = (),
    flags: Sequence[str] = (),
) -> Path:
    """Compiles a program of this folder against models in `folders`; warnings are errors."""
    cpp = Path(source).suffix == ".cpp"
    command: list[str | Path] = [compiler("c++" if cpp else "cc")]
    command += [*STRICT, "-std=c++17" if cpp else "-std=c99", *flags, "-I", HERE]
    for folder in folders:
        command += ["-I", folder, f"-Wl,-rpath,{folder}"]
    command += [HERE / source, *link, "-pthread", "-o", output]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return output


def run(
    *command: str | Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program; what it prints is in the result."""
    env = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)


def check(*command: str | Path) -> None:
    """Runs a program that says that it is fine."""
    result = run(*command)
    assert result.returncode == 0 and result.stdout == "fine\n", result.stdout + result.stderr
