"""OpenBLAS as Debian builds it for other machines: what matrix products are held against there.

The packages are fetched by apt, into a folder of their own: nothing is installed, and apt's own
lists stay as they are.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from tools.bench.instructions import Count, of_one_run
from tools.foreign import Machine, compile_c
from tools.models.cache import cache_folder

ARCHITECTURES = {"aarch64": "arm64", "arm": "armhf", "x86_64": "amd64"}  # Debian's words
PACKAGES = ("libopenblas0-pthread", "libgfortran5", "libgcc-s1")
SOURCE = Path(__file__).with_name("repeat_gemm.c")


class OpenBlasError(RuntimeError):
    """There is no OpenBLAS for a machine; the message names the package."""


def library(machine: Machine) -> Path:
    """The library for a machine, fetched at the first time. Raises OpenBlasError."""
    root = _root(machine)
    if not (found := next(root.rglob("libopenblas*.so.0"), None)):
        _fetch(machine, root)
        found = next(root.rglob("libopenblas*.so.0"), None)
    if found is None:
        raise OpenBlasError(f"{PACKAGES[0]} for {machine.arch} holds no library")
    return found


def product(machine: Machine, shape: tuple[int, int, int]) -> Count:
    """A product of matrices [rows, inner] and [inner, columns] of floats, given as (rows, inner,
    columns), on one thread; `said` is the cpu that it took the machine's for. Raises OpenBlasError,
    PluginError."""
    rows, inner, columns = shape
    place = library(machine)
    paths = sorted({str(file.parent) for file in _root(machine).rglob("*.so.*")})
    variables = {"OPENBLAS_NUM_THREADS": "1", "LD_LIBRARY_PATH": ":".join(paths)}
    return of_one_run(machine, _program(machine), [place, rows, columns, inner], variables)


def _root(machine: Machine) -> Path:
    return cache_folder() / "debian" / machine.arch


@lru_cache
def _program(machine: Machine) -> Path:
    return compile_c(
        machine, [SOURCE], _root(machine) / "repeat_gemm", ["-Wall", "-Wextra", "-ldl"]
    )


def _fetch(machine: Machine, root: Path) -> None:
    """Unpacks the packages into `root`."""
    debian = ARCHITECTURES.get(machine.arch)
    if debian is None:
        raise OpenBlasError(f"Debian has no {PACKAGES[0]} for {machine.arch}")
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise OpenBlasError(f"{PACKAGES[0]}:{debian}: no apt-get on this machine")
    with tempfile.TemporaryDirectory(prefix="cuvil-debian-") as scratch:
        apt = _apt(Path(scratch), debian)
        # What of the lists cannot be had is not told here but by what then cannot be found.
        subprocess.run([*apt, "update", "-q"], capture_output=True, check=False)
        _checked([*apt, "download", "-q", *PACKAGES], Path(scratch), f"{PACKAGES[0]}:{debian}")
        root.mkdir(parents=True, exist_ok=True)
        for package in Path(scratch).glob("*.deb"):
            _checked(["dpkg-deb", "-x", str(package), str(root)], Path(scratch), package.name)


def _apt(folder: Path, architecture: str) -> list[str]:
    """apt-get with lists of its own, as on a machine of that architecture with nothing on it."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "Dir::State::Lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    return ["apt-get", *(word for k, v in settings.items() for word in ("-o", f"{k}={v}"))]


def _checked(command: list[str], folder: Path, what: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OpenBlasError(f"{what}: {done.stderr.strip()}")
