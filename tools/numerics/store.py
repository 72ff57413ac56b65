"""What was measured, a file for each function: an exhaustive run can be cut into parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.numerics.sweep import Outcome

FOLDER = Path(__file__).parents[2] / "build" / "numerics"


@dataclass
class Record:
    """A function's outcomes over every `step`-th float32."""

    name: str
    step: int
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def exhaustive(self) -> bool:
        """Whether every float32 was looked at."""
        return self.step == 1


def load(name: str, folder: Path = FOLDER) -> Record | None:
    """What was measured of a function, if anything."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text())
    return Record(data["name"], data["step"], [Outcome(**o) for o in data["outcomes"]])


def save(record: Record, folder: Path = FOLDER) -> None:
    """Replaces the function's file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{record.name}.json").write_text(json.dumps(asdict(record), indent=1))


def is_current(record: Record | None, step: int, digests: Sequence[str]) -> bool:
    """Whether a record has these builds' machine code at this step or a smaller one."""
    if record is None or record.step > step:
        return False
    return [o.digest for o in record.outcomes] == list(digests)
