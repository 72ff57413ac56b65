"""Runs the command line in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from cuvil.cli import main


@dataclass(frozen=True)
class Result:
    """Exit status and what was printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed, read as JSON."""
        return json.loads(self.out)


class Command:
    """`Command(capsys)("check", path)` is `cuvil check path`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Result:
        self._capsys.readouterr()
        status = main([str(word) for word in words])
        out, err = self._capsys.readouterr()
        return Result(status, out, err)

    def fails(self, *words: object) -> str:
        """The one line that a command says on stderr before it fails."""
        result = self(*words)
        assert result.status == 1, result
        lines = [line for line in result.err.splitlines() if " took " not in line]
        assert len(lines) == 1 and lines[0].startswith("cuvil: "), result
        assert not result.out
        return lines[0]
