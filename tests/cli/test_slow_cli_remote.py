"""bench --remote: over ssh to a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.cli_runner import Command
from cli.ssh_server import Server, running_sshd

from cuvil.cli.remote import Host, parse_host
from cuvil.errors import OptionError

FIGURES = {"median_ms", "best_ms", "samples", "settings"}
SHORT = ("--seconds", "0.1")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "ssh"
    folder.mkdir()
    with running_sshd(folder) as made:
        yield made


def remote(server: Server) -> tuple[str | Path, ...]:
    return "--remote", server.address, "--ssh-config", server.config


def left_over() -> set[Path]:
    """Folders of the command on the server, which is this machine."""
    return set(Path("/tmp").glob("cuvil-??????"))


def test_a_model_is_compiled_copied_timed_and_removed(
    cuvil: Command, dense: Path, server: Server
) -> None:
    before = left_over()
    words = ("bench", dense, *remote(server), *SHORT, "--size", "N=3")
    result = cuvil(*words, "--json")
    assert result.status == 0, result.err
    row = result.json["engines"]["cuvil"]
    assert set(row) == FIGURES and 0 < row["best_ms"] <= row["median_ms"] and row["samples"] >= 5
    assert result.json["inputs"] == {"x": [3, 8]} and result.json["remote"] == server.address
    told = cuvil(*words).out
    assert "x [3, 8], threads 1" in told and f"on {server.address}" in told
    assert left_over() <= before


def test_a_server_without_sftp(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    (tmp_path / "ssh").mkdir()
    with running_sshd(tmp_path / "ssh", sftp=False) as server:
        assert "cuvil" in cuvil("bench", dense, *remote(server), *SHORT).out


@pytest.mark.parametrize(("kind", "weights"), [("a", "external"), ("so", "external")])
def test_what_was_compiled_is_timed_with_its_weights(
    cuvil: Command, dense: Path, server: Server, tmp_path: Path, kind: str, weights: str
) -> None:
    words = ("compile", dense, "-o", tmp_path / "out", "--emit", kind, "--weights", weights)
    assert cuvil(*words).status == 0
    result = cuvil("bench", tmp_path / "out", *remote(server), *SHORT, "--threads", "2", "--json")
    assert result.status == 0, result.err
    assert "threads 2" in result.json["engines"]["cuvil"]["settings"]


def test_a_failure_there_is_one_line(cuvil: Command, dense: Path, server: Server) -> None:
    bad = ("bench", dense, *remote(server), "-i", "x=[[1, 2, 3]]")
    assert "'x': dim 1 is 3, expected 8" in cuvil.fails(*bad)
    nobody = server.address.replace("127.0.0.1", "127.0.0.2")
    said = cuvil.fails("bench", dense, "--remote", nobody, "--ssh-config", server.config)
    assert nobody in said and "Connection refused" in said


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--remote", "two words"], "--remote two words: expected user@host or user@host:port"),
        (["--remote", "-oProxyCommand=x"], "expected user@host"),
        (["--remote", "here", "--vs", "onnxruntime"], "--remote times cuvil alone"),
        (["--remote", "here", "--kernels"], "leave out --vs and --kernels"),
    ],
    ids=["no address", "an option", "peers", "kernels"],
)
def test_wrong_words(cuvil: Command, dense: Path, words: list[str], text: str) -> None:
    assert text in cuvil.fails("bench", dense, *words)


def test_addresses() -> None:
    assert parse_host("me@board.local:2200") == Host("me@", "board.local", "2200")
    assert parse_host("board") == Host("", "board")
    assert parse_host("me@[::1]:22", "file") == Host("me@", "[::1]", "22", "file")
    assert str(parse_host("me@board:22")) == "me@board:22"
    with pytest.raises(OptionError):
        parse_host("me@board:port")
