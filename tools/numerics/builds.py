"""The builds that this machine runs, and scalar functions compiled as each of them has it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request
from cuvil.ops.scalars import SCALARS, Scalar
from cuvil.targets.backend import VariantSpec
from cuvil.targets.registry import find
from cuvil.targets.target import Target

Array = np.ndarray[Any, Any]

_PROBES = ("exp", "sin", "round")  # what tells the code of two builds apart


@lru_cache(maxsize=1)
def builds() -> tuple[VariantSpec, ...]:
    """The builds of an artefact for this machine's triple that run here, the plainest first.

    A build that differs only in kernels of other kinds has the same code here and is left out.
    """
    backend, host = find("cpu")
    have = backend.feature_bits([word[1:] for word in host.features if word[0] == "+"])
    every = backend.variants(Target(host.triple))
    usable = [v for v in reversed(every) if not backend.feature_bits(v.requires) & ~have]
    plainest: dict[str, VariantSpec] = {}
    for build in usable:
        code = "".join(Compiled(name, "f32", build).digest for name in _PROBES)
        plainest.setdefault(code, build)
    return tuple(plainest.values())


class Compiled:
    """One row of the scalar table at one element type, as one build has it.

    `body` is the loop that LLVM vectorises, `tail` the code for one element at a time.
    """

    def __init__(
        self, name: str, dtype: str, build: VariantSpec, modules: _Modules | None = None
    ) -> None:
        self.name, self.build = name, build
        self._request = Request(name, dtype)
        self._modules = modules or _Modules([self._request], build)

    @property
    def digest(self) -> str:
        """Changes with the machine code of the loop."""
        return hashlib.sha256(self._modules.body.object).hexdigest()[:16]

    def body(self, *arrays: Array, out: Array | None = None) -> Array:
        """The function over equal-sized arrays, element by element."""
        return self._modules.body(self._request, *arrays, out=out)

    def tail(self, *arrays: Array, out: Array | None = None) -> Array:
        """As `body`, one element at a time."""
        return self._modules.tail(self._request, *arrays, out=out)


class _Modules:
    """What LLVM makes of some functions, with vectors and without."""

    def __init__(self, requests: Sequence[Request], build: VariantSpec) -> None:
        self._requests, self._facts = requests, build.facts

    def _compiled(self, level: int) -> ArrayFunctions:
        facts = self._facts
        return ArrayFunctions(self._requests, facts, facts.cpu, facts.features, level)

    @cached_property
    def body(self) -> ArrayFunctions:
        return self._compiled(level=3)

    @cached_property
    def tail(self) -> ArrayFunctions:
        return self._compiled(level=1)


def compiled(names: Sequence[str], dtype: str, build: VariantSpec) -> dict[str, Compiled]:
    """Many rows at once, which takes less time than one after the other."""
    modules = _Modules([Request(name, dtype) for name in names], build)
    return {name: Compiled(name, dtype, build, modules) for name in names}


def unary_rows(dtype: str) -> list[Scalar]:
    """The mathematical functions of one operand and without attributes that must be given."""
    plain = ("identity", "cast", "cast_narrow", "bitcast", "isnan", "isinf")
    return [
        row
        for row in SCALARS.values()
        if row.arity == 1 and row.supports(dtype) and row.name not in plain
    ]
