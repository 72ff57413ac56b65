"""targets, and what a target that cannot be had is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.cli_runner import Command

from cuvil.cli import foreign
from cuvil.targets import registry

KNOWN = {"warp": "cuvil-backend-warp", "weft": "cuvil-backend-warp"}


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backends that are known or do not load, beside those that are here."""
    found = registry.backends()
    monkeypatch.setattr(registry, "packages", lambda: KNOWN)
    reason = registry.TargetError("backend 'weave' does not load: no loom")
    monkeypatch.setattr(registry, "scan", lambda: (found, (reason,)))


@pytest.mark.usefixtures("others")
def test_what_is_here_what_is_known_and_what_is_broken(cuvil: Command) -> None:
    data = cuvil("targets", "--json").json
    assert data["not_installed"] == {"cuvil-backend-warp": ["warp", "weft"]}
    assert data["broken"] == ["backend 'weave' does not load: no loom"]
    told = cuvil("targets").out
    for row in data["backends"]:
        assert f"{row['name']} {row['version']} ({row['package']})" in told
        assert all(word in told for word in (*row["triples"], *row["cpus"], *row["features"]))
    assert "pip install cuvil-backend-warp: warp, weft" in told
    assert "does not load: backend 'weave' does not load: no loom" in told


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("command", ["compile", "run", "bench"])
def test_a_backend_that_is_not_here(cuvil: Command, dense: Path, command: str) -> None:
    said = cuvil.fails(command, dense, "--target", "warp-linux-gnu")
    assert "no installed backend serves 'warp-linux-gnu': pip install cuvil-backend-warp" in said


def test_a_cpu_or_feature_that_is_not_known(cuvil: Command, dense: Path) -> None:
    (row, *_) = cuvil("targets", "--json").json["backends"]
    target, cpu, feature = row["triples"][0], next(iter(row["cpus"])), next(iter(row["features"]))
    said = cuvil.fails("run", dense, "--target", target, "--cpu", f"{cpu}x")
    assert f"unknown cpu '{cpu}x' for {target}; did you mean '{cpu}'?" in said
    said = cuvil.fails("compile", dense, "--target", target, "--features", f"+{feature}x")
    assert f"unknown feature '{feature}x' for {target}; did you mean '{feature}" in said


def test_no_emulator(cuvil: Command, dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told before anything is compiled. This machine is made out to be of another kind."""
    triple = registry.find("cpu")[1].triple
    monkeypatch.setattr(foreign, "this_triple", lambda: "warp-linux-gnu")
    monkeypatch.setattr("platform.machine", lambda: "warp")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = cuvil.fails("run", dense, "--target", triple, "-i", "ones")
    arch = triple.partition("-")[0]
    assert f"no program for {triple} can be run here: qemu-{arch} (Debian: qemu-user)" in said


def test_a_folder_for_another_target(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    cuvil("compile", dense, "-o", tmp_path / "out")
    mine = registry.find("cpu")[1].triple
    assert "y: float32 [1, 5]" in cuvil("run", tmp_path / "out", "--target", mine, "-i", "ones").out
    others = [t for b in registry.backends() for t in b.triples if t != mine]
    said = cuvil.fails("run", tmp_path / "out", "--target", others[0], "-i", "ones")
    assert f"was compiled for {mine}, not for {others[0]}" in said
