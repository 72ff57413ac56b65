"""Offsets of buffers in one arena: a pure function of lifetimes and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim, ceil_div, dim_max

ALIGN = 64


@dataclass(frozen=True)
class Lifetime:
    """A buffer that is live from step `first` to step `last`, both included.

    bytes: its size, a dim expression. hint: the size to plan with where `bytes` is symbolic.
    """

    first: int
    last: int
    bytes: Dim
    hint: int

    def overlaps(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class ArenaPlan:
    """offsets[i] of buffer i, multiples of the alignment, and the arena's size. Buffers whose
    lifetimes overlap never overlap in memory, for any value of the symbols."""

    offsets: tuple[Dim, ...]
    bytes: Dim


def plan_arena(buffers: Sequence[Lifetime], align: int = ALIGN) -> ArenaPlan:
    """Literal sizes share by offset (best fit, largest first); symbolic sizes share whole slots."""
    literal = [i for i, b in enumerate(buffers) if isinstance(b.bytes, int)]
    symbolic = [i for i, b in enumerate(buffers) if not isinstance(b.bytes, int)]
    offsets: dict[int, Dim] = {}
    end: Dim = _place_literal(buffers, literal, offsets, align)
    for slot in _slots(buffers, symbolic):
        size = _aligned(dim_max(*(buffers[i].bytes for i in slot)), align)
        offsets.update(dict.fromkeys(slot, end))
        end = end + size
    return ArenaPlan(tuple(offsets[i] for i in range(len(buffers))), end)


def _aligned(size: Dim, align: int) -> Dim:
    return ceil_div(size, align) * align


def _place_literal(
    buffers: Sequence[Lifetime], which: Sequence[int], offsets: dict[int, Dim], align: int
) -> int:
    """Largest first, each at the lowest offset free during its life; returns the end."""
    placed: list[tuple[int, int, Lifetime]] = []
    end = 0
    for i in sorted(which, key=lambda i: (-buffers[i].hint, buffers[i].first, i)):
        size = _aligned(buffers[i].bytes, align)
        assert isinstance(size, int)
        at = 0
        for start, stop, life in sorted(placed, key=lambda p: p[:2]):
            if life.overlaps(buffers[i]):
                if start - at >= size:
                    break
                at = max(at, stop)
        offsets[i] = at
        placed.append((at, at + size, buffers[i]))
        end = max(end, at + size)
    return end


def _slots(buffers: Sequence[Lifetime], which: Sequence[int]) -> list[list[int]]:
    """Groups of buffers with disjoint lives: each joins the slot whose size it changes least."""
    slots: list[list[int]] = []
    for i in sorted(which, key=lambda i: (-buffers[i].hint, buffers[i].first, i)):
        free = [s for s in slots if not any(buffers[i].overlaps(buffers[j]) for j in s)]
        if free:
            min(free, key=lambda s: abs(buffers[s[0]].hint - buffers[i].hint)).append(i)
        else:
            slots.append([i])
    return slots
