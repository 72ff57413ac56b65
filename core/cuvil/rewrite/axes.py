"""Arithmetic of permutations and of the groups of axes that a reshape merges and splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cuvil.ir.dims import Dim, product

T = TypeVar("T")
Group = tuple[tuple[int, ...], tuple[int, ...]]


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `perm`."""
    result = [0] * len(perm)
    for i, p in enumerate(perm):
        result[p] = i
    return tuple(result)


def permuted(items: Sequence[T], perm: Sequence[int]) -> tuple[T, ...]:
    """Item perm[i] at place i: the dims of a transpose."""
    return tuple(items[p] for p in perm)


def moves_only_units(dims: Sequence[Dim], perm: Sequence[int]) -> bool:
    """Whether a transpose of these dims leaves the order of elements as it is."""
    kept = [p for p in perm if dims[p] != 1]
    return kept == sorted(kept)


def channels_last(rank: int) -> tuple[int, ...]:
    """The perm from [N, C, spatial...] to [N, spatial..., C]."""
    return (0, *range(2, rank), 1)


def channels_first(rank: int) -> tuple[int, ...]:
    """The perm from [N, spatial..., C] to [N, C, spatial...]."""
    return (0, rank - 1, *range(1, rank - 1))


def reshape_groups(source: Sequence[Dim], target: Sequence[Dim]) -> list[Group] | None:
    """Smallest groups of neighbouring axes, (source axes, target axes), of equal extent, in order.

    A dim of 1 that has no partner is a group with one empty side. None where extents are not
    known to agree.
    """
    groups: list[Group] = []
    i = j = 0
    while i < len(source) or j < len(target):
        step = _next_group(source[i:], target[j:])
        if step is None:
            return None
        groups.append((tuple(range(i, i + step[0])), tuple(range(j, j + step[1]))))
        i, j = i + step[0], j + step[1]
    return groups


def _next_group(source: Sequence[Dim], target: Sequence[Dim]) -> tuple[int, int] | None:
    if source and target and source[0] == target[0]:
        return 1, 1
    if source and source[0] == 1:
        return 1, 0
    if target and target[0] == 1:
        return 0, 1
    for total in range(2, len(source) + len(target) + 1):
        for m in range(1, total):
            n = total - m
            if m <= len(source) and n <= len(target) and product(source[:m]) == product(target[:n]):
                return m, n
    return None
