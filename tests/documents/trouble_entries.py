"""Entries of docs/troubleshooting.md: by heading, the message that stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
ENTRY = re.compile(r"^### ([^\n]+)\n\n```text\n(.+?)\n```$", re.DOTALL | re.MULTILINE)
CHAPTERS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.S | re.M))
BY_TORCH = ("PyTorch", "Hugging Face")

Provoke = Callable[[], object]


def entries(*chapters: str) -> dict[str, str]:
    """The messages of some chapters by their headings."""
    return {name: text for c in chapters for name, text in ENTRY.findall(CHAPTERS[c])}


def assert_raised(message: str, provoke: Provoke) -> None:
    """What is called raises what the page says; `...` there stands for anything."""
    with pytest.raises(Exception) as caught:
        provoke()
    assert_said(message, f"cuvil.{type(caught.value).__name__}: {caught.value}")


def assert_said(message: str, said: str) -> None:
    """A text is the page's; `...` there stands for anything."""
    pattern = ".*".join(map(re.escape, message.split("...")))
    assert re.fullmatch(pattern, said, re.DOTALL), f"the page: {message}\nraised: {said}"
