"""The loops of compiled kernels that multiply most, and how fast llvm-mca thinks they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tools.foreign import ForeignError

_ITERATIONS = 100
_LABEL = re.compile(r"^([.\w$]+):")


@dataclass(frozen=True)
class Syntax:
    """How to read a family's assembly: patterns of what multiplies and adds, of loads, and of
    memory on the stack. state: of what sets how later instructions work, "" for nothing. hint: what
    tells llvm-mca so, with the pattern's groups, in capitals; "": that instruction itself."""

    multiply: str
    load: str
    stack: str
    state: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Loop:
    """An innermost loop. before: the last in front of it that sets a state, or hints of it."""

    lines: tuple[str, ...]
    syntax: Syntax
    before: tuple[str, ...] = ()

    def _with(self, pattern: str) -> list[str]:
        return [line for line in self.lines if re.search(pattern, line)]

    @property
    def multiplies(self) -> list[str]:
        return self._with(self.syntax.multiply)

    @property
    def loads(self) -> list[str]:
        return self._with(self.syntax.load)

    @property
    def stack(self) -> list[str]:
        """Instructions that go to the stack: registers did not suffice."""
        return self._with(self.syntax.stack)


@dataclass(frozen=True)
class Speed:
    """cycles: of one trip; bound: of its multiplications alone, with nothing to wait for."""

    cycles: float
    bound: float

    @property
    def share(self) -> float:
        """Of the cpu's multiplications per cycle, those that the loop uses."""
        return self.bound / self.cycles


def loops(assembly: str, syntax: Syntax) -> list[Loop]:
    """The innermost loops of a unit that multiply, the largest first."""
    lines = assembly.splitlines()
    labels = {m.group(1): n for n, line in enumerate(lines) if (m := _LABEL.match(line))}
    spans = []
    for end, line in enumerate(lines):
        word = line.split("//")[0].split("#")[0].replace(",", " ").split()
        start = labels.get(word[-1]) if len(word) > 1 and not line.startswith(".") else None
        if start is not None and start < end and line[:1].isspace():
            spans.append((start, end))
    inner = [s for s in spans if not any(s[0] <= t[0] and t[1] <= s[1] for t in spans if t != s)]
    found = [_loop(lines, *span, syntax) for span in inner]
    return sorted((x for x in found if x.multiplies), key=lambda x: -len(x.multiplies))


def _loop(lines: Sequence[str], start: int, end: int, syntax: Syntax) -> Loop:
    body = tuple(filter(_is_instruction, lines[start : end + 1]))
    return Loop(body, syntax, _state(lines[:start], syntax))


def _state(earlier: Sequence[str], syntax: Syntax) -> tuple[str, ...]:
    found = [re.search(syntax.state, line) for line in earlier] if syntax.state else []
    last = next((match for match in reversed(found) if match), None)
    if last is None:
        return ()
    return tuple(last.expand(syntax.hint).upper().splitlines()) or (last.string,)


def _is_instruction(line: str) -> bool:
    return line[:1].isspace() and re.match(r"\s+[a-z]", line) is not None


def speed(loop: Loop, triple: str, cpu: str, features: str = "") -> Speed:
    """What llvm-mca says of a loop on a cpu. Raises ForeignError where it does not know it."""
    cycles, _ = _analyse([*loop.before, *loop.lines], triple, cpu, features)
    _, bound = _analyse([*loop.before, *loop.multiplies], triple, cpu, features)
    return Speed(cycles, bound)


def analyser() -> str | None:
    """The program llvm-mca, None where it is not installed."""
    return shutil.which("llvm-mca-22") or shutil.which("llvm-mca")


def _analyse(lines: Sequence[str], triple: str, cpu: str, features: str) -> tuple[float, float]:
    program = analyser()
    if program is None:
        raise ForeignError("llvm-mca (Debian: llvm-22) is not installed")
    options = [f"-mtriple={triple}", f"-mcpu={cpu}", f"-iterations={_ITERATIONS}"]
    options += [f"-mattr={features}"] if features else []
    done = subprocess.run(
        [program, *options], input="\n".join(lines) + "\n", capture_output=True, text=True
    )
    total = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    block = re.search(r"Block RThroughput:\s+([\d.]+)", done.stdout)
    if done.returncode or not total or not block:
        raise ForeignError(f"llvm-mca on {cpu}: {done.stderr.strip().splitlines()[:1]}")
    return int(total.group(1)) / _ITERATIONS, float(block.group(1))
