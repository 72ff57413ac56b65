"""The demo's steps, on its smaller model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tools import demo
from tools.draw import bars, dots


def test_bars():
    assert bars([-1, 0, 0.5, 0.99, 1, 2]) == "▁▁▅███"


def test_dots():
    ink = np.zeros((4, 4), bool)
    ink[0, 0] = ink[3, 1] = True
    assert dots(ink) == ["⢁"]
    assert dots(np.ones((5, 2), bool)) == ["⣿", "⠉"]


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> demo.Subject:
    """The voice activity detector, compiled."""
    return demo.compiled("silero-vad", "vad", tmp_path_factory.mktemp("demo"))


def test_python_and_c_hear_the_same(
    listener: demo.Subject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    sound = demo.voice()
    heard = demo.show_speech(listener, sound)
    demo.show_c_program(listener.artefact, sound, heard, tmp_path)
    out = capsys.readouterr().out
    assert out.count(bars(heard)) == (3 if demo.c_compiler() else 2)


def test_without_a_c_compiler_it_says_how_to_get_one(
    listener: demo.Subject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(demo, "c_compiler", lambda: None)
    demo.show_c_program(listener.artefact, demo.voice(), np.zeros(3, np.float32), tmp_path)
    assert "apt-get install gcc" in capsys.readouterr().out


def test_a_difference_fails(listener: demo.Subject, tmp_path: Path):
    right = np.ones(3, np.float32)
    with pytest.raises(demo.DemoError, match="differ from ONNX Runtime's"):
        demo.check("probabilities", right, right * 1.001)
    if demo.c_compiler():
        with pytest.raises(demo.DemoError, match="differ from Python's"):
            demo.show_c_program(listener.artefact, demo.voice(), right, tmp_path)


def test_a_deaf_detector_fails(listener: demo.Subject, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo, "listen", lambda model, sound: np.zeros(len(sound) // 512, "f4"))
    with pytest.raises(demo.DemoError, match="does not tell"):
        demo.show_speech(listener, demo.voice())


def test_times_name_both_engines(listener: demo.Subject, capsys: pytest.CaptureFixture[str]):
    fresh = demo.speech_inputs(np.zeros(512, np.float32), np.zeros(64, np.float32), None)
    demo.show_times(listener, fresh, "32 ms of sound", seconds=0)
    assert "times as fast" in capsys.readouterr().out
