"""What goes wrong around a command: files, folders, disks, interrupts. One line, and a status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.cli_runner import Command

OF_MODELS = ("compile", "check", "inspect", "run", "verify", "bench", "profile")


@pytest.mark.parametrize("command", OF_MODELS)
def test_what_is_no_model(cuvil: Command, dense: Path, tmp_path: Path, command: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "empty" in cuvil.fails(command, empty)
    assert "No such file" in cuvil.fails(command, tmp_path / "none.onnx")
    (tmp_path / "no.so").write_bytes(b"\x7fELF" + bytes(60))
    assert "no.so" in cuvil.fails(command, tmp_path / "no.so")
    (tmp_path / "null.onnx").write_bytes(b"")
    assert "null.onnx" in cuvil.fails(command, tmp_path / "null.onnx")
    assert str(dense) in cuvil.fails(command, dense / "beyond")


@pytest.mark.parametrize("command", ["run", "profile", "verify", "bench"])
def test_inputs_that_do_not_fit(cuvil: Command, dense: Path, tmp_path: Path, command: str) -> None:
    for name, array, said in (
        ("wide", np.zeros((2, 9), np.float32), "9"),
        ("long", np.zeros((2, 8)), "float64"),
        ("flat", np.zeros(8, np.float32), "rank"),
        ("words", np.array(["a"]), "<U1"),
        ("objects", np.array([None]), "objects.npy"),
    ):
        path = tmp_path / f"{name}.npy"
        np.save(path, array, allow_pickle=True)
        line = cuvil.fails(command, dense, "--input", f"x={path}")
        assert said in line or name in line, line
    (tmp_path / "torn.npy").write_bytes(b"\x93NUMPY\x01\x00")
    assert "torn.npy" in cuvil.fails(command, dense, "--input", f"x={tmp_path}/torn.npy")
    assert str(tmp_path) in cuvil.fails(command, dense, "--input", f"x={tmp_path}")


def places(tmp_path: Path) -> list[Path]:
    """Where nothing can be written, whoever asks."""
    (tmp_path / "file").write_text("mine")
    return [tmp_path / "file" / "out", Path("/proc/no/out"), Path("/dev/null/out")]


def test_outputs_that_cannot_be_written(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    for place in places(tmp_path):
        assert str(place.parent) in cuvil.fails("compile", dense, "-o", place)
        assert str(place.parent) in cuvil.fails(
            "run", dense, "-i", "random", "--output", f"{place}.npz"
        )
        assert str(place.parent) in cuvil.fails("profile", dense, "--output", f"{place}.json")
    assert (tmp_path / "file").read_text() == "mine"


def cuvil_process(*words: object, limit: int = 0, **more: object) -> subprocess.Popen[str]:
    """A command in a process of its own. limit: bytes that one file may have."""
    code = (
        "import resource, sys\n"
        f"limit = {limit}\n"
        "if limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "from cuvil.cli import main\n"
        "sys.exit(main())\n"
    )
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )  # type: ignore[call-overload, no-any-return]


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_a_full_disk(dense: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = cuvil_process("compile", dense, "-o", out, limit=4096)
    said = process.communicate(timeout=120)[1]
    lines = [line for line in said.splitlines() if " took " not in line]
    assert process.returncode == 1 and len(lines) == 1, said
    assert "cuvil: " in said and "Traceback" not in said
    assert left(out) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_compile_leaves_nothing_to_be_taken_for_a_result(
    dense: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """A killed process cannot clean up, but what it leaves has no name that anybody loads."""
    for wait in (0.3, 0.8, 1.3):
        out = tmp_path / f"out{wait}"
        environment = {**os.environ, "CUVIL_CACHE_DIR": str(tmp_path / "cache")}
        process = cuvil_process(
            "compile", dense, "-o", out, env=environment, start_new_session=True
        )
        time.sleep(wait)
        if process.poll() is None:
            os.killpg(process.pid, number)
        said = process.communicate(timeout=60)[1]
        files = [n for n in left(out) if not n.startswith(".cuvil-")]
        assert "Traceback" not in said, said
        assert process.returncode == 0 or files == [], (process.returncode, files)
        if number == signal.SIGINT and process.returncode not in (0, -number):
            assert process.returncode == 130 and left(out) == [], said


def test_weights_that_were_changed_on_disk(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    """Loading trusts the size and the build; verify and doctor read every byte."""
    out = tmp_path / "out"
    assert cuvil("compile", dense, "-o", out, "--weights", "external").status == 0
    result = cuvil("verify", dense, "--artefact", out)
    assert result.status == 0 and "dense.weights is what was written" in result.err
    assert "dense.weights is what was written" in cuvil("doctor", out, "--json").json["artefact"]
    weights = out / "dense.weights"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert "is not what was written" in cuvil.fails("verify", dense, "--artefact", out)
    report = cuvil("doctor", out / "libdense.so")
    assert report.status == 1 and "dense.weights is not what was written" in report.out
    weights.unlink()
    assert "dense.weights is missing" in cuvil.fails("verify", dense, "--artefact", out)


def test_manifests_of_others(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cuvil("compile", dense, "-o", out)
    for text in ("", "[]", '{"files": 3}', '{"files": ["../../etc/passwd"]}', "\x00"):
        (out / "manifest.json").write_text(text)
        assert "is not a manifest" in cuvil.fails("verify", dense, "--artefact", out)
    (out / "manifest.json").unlink()
    assert "no manifest.json" in cuvil("verify", dense, "--artefact", out).err
