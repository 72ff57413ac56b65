"""Commands of a document, run in a folder of the test's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CUVIL = '-c "from cuvil.cli import main; raise SystemExit(main())" "$@"'
COMMANDS = {"cuvil": CUVIL, "python": '"$@"'}


def add_commands(folder: Path, commands: Mapping[str, str] = COMMANDS) -> None:
    """Makes names commands in the folder's bin/: each is this Python with words of the shell's."""
    (folder / "bin").mkdir()
    for name, words in commands.items():
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}\n')
        script.chmod(0o755)


def run_in(
    folder: Path, command: list[str], first: tuple[Path, ...] = (), **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command with those of bin/ and what this process imports.

    first: folders to import from before; more: variables of the environment.
    """
    env = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([*map(str, first), *filter(None, sys.path)]),
        "CUVIL_CACHE_DIR": str(folder / "cache"),
        **more,
    }
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def shell(
    folder: Path, text: str, first: tuple[Path, ...] = (), **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs lines of shell until one fails; see `run_in`."""
    return run_in(folder, ["sh", "-e", "-c", text], first, **more)
