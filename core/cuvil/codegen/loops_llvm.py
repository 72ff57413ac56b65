"""Loop metadata: what LLVM is asked to do with a `nest.for`."""

from __future__ import annotations

from llvmlite import ir

_HINTS = {"unroll": ['!"llvm.loop.unroll.full"']}  # LLVM's own cost model decides on the rest


class _Node:
    """A metadata node written as raw text: llvmlite has no distinct, self-referring nodes."""

    def __init__(self, number: int) -> None:
        self._number = number

    def get_reference(self) -> str:
        return f"!{self._number}"


class LoopHints:
    """Attaches `llvm.loop` metadata to branches of one module; `text` is appended to its IR."""

    FIRST = 100_000  # beyond the numbers llvmlite gives out

    def __init__(self, module: ir.Module) -> None:
        if not hasattr(module, "cuvil_metadata"):
            module.cuvil_metadata = []
        self._lines: list[str] = module.cuvil_metadata

    def mark(self, branch: ir.Instruction, kind: str) -> None:
        """Marks the back edge of a loop of this kind ("" is left to LLVM's own judgement)."""
        hints = _HINTS.get(kind)
        if not hints:
            return
        first = self.FIRST + len(self._lines)
        members = [f"!{first + 1 + i}" for i in range(len(hints))]
        self._lines.append(f"!{first} = distinct !{{!{first}, {', '.join(members)}}}")
        for i, hint in enumerate(hints):
            self._lines.append(f"!{first + 1 + i} = !{{{hint}}}")
        branch.set_metadata("llvm.loop", _Node(first))


def module_text(module: ir.Module) -> str:
    """The module's IR with its loop metadata."""
    lines = getattr(module, "cuvil_metadata", [])
    return "\n".join([str(module), *lines, ""])
