"""Features of cpus, which imply others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """One feature of a cpu. bit: in the mask that the shim's detect function returns; llvm: its
    name in LLVM's feature string; implies: features that come with it."""

    name: str
    bit: int
    llvm: str
    implies: tuple[str, ...] = ()


def closure(features: Mapping[str, Feature], names: Iterable[str]) -> frozenset[str]:
    """The named features and all that they imply."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += features[name].implies
    return frozenset(found)


def amended(
    features: Mapping[str, Feature], names: Iterable[str], words: Iterable[str]
) -> set[str]:
    """The named features with what they imply, then words "+a" and "-b" in order: one that is
    taken away takes those that imply it with it."""
    have = set(closure(features, names))
    for word in words:
        if word[0] == "+":
            have |= closure(features, (word[1:],))
        else:
            have = {f for f in have if word[1:] not in closure(features, (f,))}
    return have
