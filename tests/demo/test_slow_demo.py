"""The whole demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import demo
from tools.models.samples import LINE


def test_all_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    demo.run(tmp_path, seconds=0.1)
    out = capsys.readouterr().out
    assert f"Cuvil reads         {LINE}" in out
    assert out.count("⠀") > 40  # the line of print, as dots: the paper between letters
    assert not demo.c_compiler() or "the same to the last bit" in out
