"""What stands behind a jitted function: its specialisations, and why there is none."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any

from cuvil import jit_compiler as lazy
from cuvil.errors import CompileError, Error, TargetError
from cuvil.ir.py_types import Type
from cuvil.jit_compiler.frontend.source import Source, Unsupported, read_source
from cuvil.jit_compiler.signature import describe, hints_of, kind_of
from cuvil_runtime import _runtime

if TYPE_CHECKING:
    from cuvil.jit_compiler.frontend.values import Failure

MAX_SIGNATURES = 8


@dataclass(frozen=True)
class Specialisation:
    """Code for one signature. failures: what its sites raise."""

    kinds: tuple[Type, ...]
    result: Type
    failures: list[Failure]


class Compiled:
    """Makes the code of one function when it is called with types that are new."""

    def __init__(self, python: Callable[..., Any], target: str, opt_level: int) -> None:
        self.python, self.target, self.opt_level = python, target, opt_level
        self.function: Any = None
        self.source: Source | None = None
        self.hints: dict[str, Type] | None = None
        self.specialisations: list[Specialisation] = []
        self.refusals: dict[str, str] = {}
        self.reason = ""
        self.misses = 0
        self._lock = RLock()

    # -- called by the runtime -----------------------------------------------------------------
    def miss(self, arguments: tuple[Any, ...]) -> bool:
        """Makes code for arguments that no specialisation takes; False leaves them to Python."""
        with self._lock:
            self.misses += 1
            if self.misses > MAX_SIGNATURES:
                self.close(f"its types keep changing: {MAX_SIGNATURES} signatures so far")
                return False
            kinds: tuple[Type, ...] | None = None
            try:
                kinds = self.kinds_of(arguments)
                self.specialise(kinds)
            except (Unsupported, CompileError, TargetError) as error:
                self.refuse(kinds, error)
                return False
            return True

    def failed(self, number: int, site: int) -> None:
        """Raises what a site says, as from the user's line."""
        failure = self.specialisations[number].failures[site]
        kind = getattr(builtins, failure.exception, RuntimeError)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            kind = RuntimeError
        raise_at(kind(failure.message), failure)

    def often_failing(self) -> None:
        """Too many calls ended in the interpreter after all."""
        self.interpret("most calls raise, or leave 64 bits")

    # -- decisions -----------------------------------------------------------------------------
    def kinds_of(self, arguments: tuple[Any, ...]) -> tuple[Type, ...]:
        source = self.read()
        if self.hints is None:
            self.hints = hints_of(self.python)
        pairs = zip(source.parameters, arguments, strict=True)
        return tuple(kind_of(value, self.hints.get(name)) for name, value in pairs)

    def read(self) -> Source:
        """The function's source. Raises Unsupported."""
        if self.source is None:
            self.source = read_source(self.python)
        return self.source

    def specialise(self, kinds: tuple[Type, ...]) -> None:
        facts = lazy.host_facts(self.target)
        with own_faults():
            made = lazy.translate(self.read(), kinds)
            entry, keeper = lazy.build(made.functions, facts, self.opt_level)
        calls = [
            (callee, method, [k.code for k in parameters], result.code)
            for callee, method, parameters, result in made.calls
        ]
        _runtime.add_code(
            self.function, entry, keeper, [k.code for k in made.parameters], made.result.code,
            calls, made.guards, made.written, made.pure, made.more,
        )  # fmt: skip
        self.specialisations.append(Specialisation(kinds, made.result, made.failures))

    def check(self, kinds: tuple[Type, ...]) -> None:
        """Raises Unsupported where a signature has no translation."""
        with own_faults():
            lazy.translate(self.read(), kinds)

    def refuse(self, kinds: tuple[Type, ...] | None, error: Error) -> None:
        """Notes a reason. Where nothing was compiled yet, Python runs the function from now on,
        unless it was only what one call passed."""
        reason = str(error)
        self.refusals[describe(kinds) if kinds is not None else "other types"] = reason
        if not self.specialisations and (kinds is not None or self.source is None):
            self.interpret(reason)

    def interpret(self, reason: str) -> None:
        self.reason = reason
        self.function._interpreted = True

    def close(self, reason: str) -> None:
        """No more code is made; what there is stays in use."""
        self.reason = reason
        self.function._closed = True
        if not self.specialisations:
            self.function._interpreted = True


@contextmanager
def own_faults() -> Iterator[None]:
    """A fault of the compiler leaves the function to Python; with CUVIL_VERIFY it is raised."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        if os.environ.get("CUVIL_VERIFY"):
            raise
        raise Unsupported(f"a fault of the compiler: {error!r}") from error


def raise_at(error: Exception, failure: Failure) -> None:
    """Raises an error whose traceback ends in a line of the user's file."""
    padding = "\n" * (failure.line - 1)
    code = compile(f"{padding}raise error", failure.file, "exec")
    exec(code.replace(co_name=failure.function), {"error": error})
