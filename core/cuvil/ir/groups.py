"""Inputs and outputs as a caller sees them: sequences and optionals stand for several tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["NONE", "SEQUENCE", "TENSOR", "Group", "Groups", "with_places"]

TENSOR, SEQUENCE, NONE = "tensor", "sequence", "none"


@dataclass(frozen=True)
class Group:
    """One input or output: the next `count` tensors of the graph.

    kind: TENSOR (one), SEQUENCE (any number) or NONE (an optional that is not there: none).
    optional: whether the model says that it may be left out.
    """

    name: str
    kind: str = TENSOR
    count: int = 1
    optional: bool = False


@dataclass(frozen=True)
class Groups:
    """All inputs and outputs of a graph."""

    inputs: tuple[Group, ...]
    outputs: tuple[Group, ...]

    @staticmethod
    def of_tensors(inputs: Iterable[str], outputs: Iterable[str]) -> Groups:
        """Each tensor by itself."""
        return Groups(tuple(map(Group, inputs)), tuple(map(Group, outputs)))

    @property
    def plain(self) -> bool:
        """Whether all are tensors that are always there."""
        return all(g.kind == TENSOR and not g.optional for g in (*self.inputs, *self.outputs))


def with_places(groups: Sequence[Group]) -> Iterator[tuple[Group, range]]:
    """Each group with the positions of its tensors."""
    at = 0
    for group in groups:
        yield group, range(at, at + group.count)
        at += group.count
