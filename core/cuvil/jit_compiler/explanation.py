"""Why a function, or a call of it, is not native code."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuvil.errors import Error
from cuvil.jit_compiler.function import Compiled
from cuvil.jit_compiler.signature import describe


@dataclass(frozen=True)
class Explanation:
    """native: whether the call in question (without one: any so far) runs as native code.

    signatures: with code, as `(int, float) -> float`. reasons: by signature, what stays in the
    interpreter and why: file, line, construct.
    """

    name: str
    native: bool
    signatures: tuple[str, ...]
    reasons: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"{self.name}: {'native' if self.native else 'interpreted'}"]
        lines += [f"  {signature}" for signature in self.signatures]
        lines += [f"  {signature}: {reason}" for signature, reason in self.reasons.items()]
        return "\n".join(lines)


def explanation_of(
    compiled: Compiled, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Explanation:
    """The explanation of a function, or of a call that is not made."""
    signatures = tuple(f"{describe(s.kinds)} -> {s.result}" for s in compiled.specialisations)
    reasons = dict(compiled.refusals)
    native = bool(signatures) and not compiled.function._interpreted
    if args or kwargs:
        native, reason = _call(compiled, args, kwargs)
        reasons |= reason
    if compiled.reason and compiled.reason not in reasons.values():
        reasons["all calls" if compiled.function._interpreted else "new types"] = compiled.reason
    return Explanation(compiled.python.__qualname__, native, signatures, reasons)


def _call(
    compiled: Compiled, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[bool, dict[str, str]]:
    bound = inspect.signature(compiled.python).bind(*args, **kwargs)
    bound.apply_defaults()
    kinds = None
    try:
        kinds = compiled.kinds_of(tuple(bound.arguments.values()))
        compiled.check(kinds)
    except Error as error:
        return False, {describe(kinds) if kinds is not None else "this call": str(error)}
    return not compiled.function._interpreted, {}
