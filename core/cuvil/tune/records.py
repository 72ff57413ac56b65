"""What was learned, kept per cpu in the folder of the compile cache.

One record for each question on each cpu, written by rename. A question is known by the kernel, the
build of the backend's that it is for, and the versions of all that takes part in compiling it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuvil.engine.cache_key import cpu_identity, digest_of
from cuvil.engine.cache_store import Store, read_json
from cuvil.engine.cached import CacheWarning

FORMAT = 1
KIND = "tuned"


@dataclass(frozen=True)
class Records:
    """The records of one compiler and one build. store: None keeps nothing. anywhere: whether
    those of other cpus count: for code that is for another machine than this."""

    store: Store | None
    build: str
    versions: Mapping[str, str]
    anywhere: bool = False

    def find(self, question: str, names: Sequence[str]) -> str | None:
        """The answer to a question, one of these names, where one is kept.

        A damaged record is as good as none; a CacheWarning names it.
        """
        if self.store is None:
            return None
        folder, name = self.store.root / "records" / KIND, self._name(question)
        pattern = f"{name}-*.json" if self.anywhere else f"{name}-{_cpu()}.json"
        for path in sorted(folder.glob(pattern)):
            answer = _read(path, question)
            if answer in names:
                return answer
        return None

    def keep(self, question: str, answer: str, gain: float) -> None:
        """Keeps an answer; where that fails, it is only asked again another time."""
        if self.store is None:
            return
        record = {"question": question, "answer": answer, "gain": round(gain, 3)}
        with suppress(OSError):
            self.store.write_record(KIND, f"{self._name(question)}-{_cpu()}", record)

    def _name(self, question: str) -> str:
        return digest_of([FORMAT, self.build, dict(self.versions), question])


def _cpu() -> str:
    return cpu_identity()[:16]


def _read(path: Path, question: str) -> str | None:
    record: dict[str, Any] = read_json(path) or {}
    if record.get("question") == question and isinstance(record.get("answer"), str):
        return str(record["answer"])
    warnings.warn(f"a damaged record of tuning is made anew: {path}", CacheWarning, stacklevel=3)
    return None


def text_of(choice: Sequence[int]) -> str:
    """Numbers of a choice as the name of an answer."""
    return json.dumps(list(choice))


def choice_of(text: str) -> tuple[int, ...]:
    """The numbers that a name stands for."""
    return tuple(json.loads(text))
