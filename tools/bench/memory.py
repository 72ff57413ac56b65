"""`python -m tools.bench.memory ENGINE MODEL THREADS FILE`: peak memory of one engine.

A process of its own loads the model and runs it once. Prints the bytes by which the most memory
that was resident meanwhile (VmHWM, pages of mapped files too) exceeds what was there when the
engine's Python package had been imported. FILE: the compiled library, or the model of a peer.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import cuvil
from tools.bench.peers import PeerError, peer
from tools.models import zoo
from tools.models.sources import Exported, torch_net

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def peak_bytes(engine: str, model: str, threads: int, file: Path) -> int:
    """What the command prints. Raises PeerError with the last line of what a failed run said."""
    command = [sys.executable, "-m", "tools.bench.memory", engine, model, str(threads), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise PeerError(f"peak memory of {engine}: {said[-1]}")
    return int(done.stdout.split()[-1])


def main(arguments: Sequence[str]) -> int:
    """Measures in this process."""
    engine, model, threads, file = arguments
    inputs = zoo.get(model).inputs(0)
    if engine == "cuvil":
        before = _begin()
        cuvil.load(Path(file), threads=int(threads)).run(None, inputs)
    else:
        other, source = peer(engine), zoo.row(model).source
        importlib.import_module(other.module)
        net = partial(torch_net, source.net) if isinstance(source, Exported) else None
        before = _begin()
        other.load(Path(file), inputs, int(threads), net)
    print(_kilobytes("VmHWM") * 1024 - before)
    return 0


def _begin() -> int:
    """Resident bytes now; the peak is counted from here on."""
    CLEAR.write_text("5", encoding="ascii")
    return _kilobytes("VmRSS") * 1024


def _kilobytes(field: str) -> int:
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
