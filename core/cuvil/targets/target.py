"""A target: what code is generated for, as a person writes it and as its backend reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuvil.errors import TargetError


@dataclass(frozen=True)
class Target:
    """A triple with a cpu and features.

    triple: `arch-os-env`, as the backend normalised it. cpu: "" for the triple's baseline with
    every variant the backend builds, "native" resolved to this machine's. features: names with
    their sign, e.g. ("+a", "-b").
    """

    triple: str
    cpu: str = ""
    features: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        parts = [self.triple, self.cpu, ",".join(self.features)]
        return " ".join(p for p in parts if p)


def parse_features(text: str) -> tuple[str, ...]:
    """`"+a,-b"` as a tuple. Raises TargetError for a word without its sign."""
    words = tuple(w.strip() for w in text.split(",") if w.strip())
    for word in words:
        if word[0] not in "+-":
            raise TargetError(f"feature '{word}' needs a sign: '+{word}' or '-{word}'")
    return words
