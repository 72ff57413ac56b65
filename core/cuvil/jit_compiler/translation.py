"""A function and the functions that it calls to one module of the `py` dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuvil.ir import py
from cuvil.ir.py_types import Dict, List, Set, Tensor, Type
from cuvil.jit_compiler.frontend import (
    folds,
    math_functions,
    numpy_functions,
    tensor_functions,
)
from cuvil.jit_compiler.frontend.program import Program
from cuvil.jit_compiler.frontend.source import Source, Unsupported, read_source
from cuvil.jit_compiler.frontend.statements import statements
from cuvil.jit_compiler.frontend.translator import Pending, Translator
from cuvil.jit_compiler.frontend.values import Failure, contains_list
from cuvil.jit_compiler.signature import kind_of

TABLES = (
    folds,
    math_functions,
    numpy_functions,
    tensor_functions,
)  # imported for what they register
MAX_FUNCTIONS = 64


@dataclass(frozen=True)
class Translated:
    """A module of functions, the entry first, and what goes with it.

    parameters: of the entry, values from outside included. more: those values. calls, guards: see
    Program. written: per parameter, whether the function changes the list or dict that came in, or
    may change the tensor.
    """

    functions: list[py.FuncOp]
    parameters: tuple[Type, ...]
    result: Type
    failures: list[Failure]
    calls: list[tuple[Any, str | None, tuple[Type, ...], Type]]
    guards: list[tuple[object, str | None, object]]
    more: list[object]
    written: list[bool]
    pure: bool


@dataclass
class _Callee:
    name: str
    translator: Translator
    done: py.FuncOp | None = None


class _Module:
    """The functions of a module, each translated once per signature."""

    def __init__(self) -> None:
        self.program = Program(self.callee, lambda value, t: _outside_type(value, t))
        self.callees: dict[tuple[int, tuple[Type, ...]], _Callee] = {}
        self.functions: list[py.FuncOp] = []

    def callee(
        self, function: Any, kinds: tuple[Type, ...], caller: Translator
    ) -> tuple[str, Type, dict[str, Type]]:
        python = getattr(function, "__wrapped__", function)
        key = (id(python), kinds)
        found = self.callees.get(key)
        if found is None:
            found = self.translate(read_source(python), kinds, key)
        if found.done is None:
            return self.recursive(found, caller)
        return found.name, found.done.result.data, found.translator.outside

    def recursive(self, found: _Callee, caller: Translator) -> tuple[str, Type, dict[str, Type]]:
        """A function that is being translated: its result as far as it is known."""
        translator = found.translator
        translator.recursive = True
        if not translator.results and not translator.known_results:
            raise Pending(f"what '{found.name}' returns, which calls itself")
        return found.name, translator.result_so_far, translator.outside

    def translate(
        self, source: Source, kinds: tuple[Type, ...], key: tuple[int, tuple[Type, ...]]
    ) -> _Callee:
        if len(self.callees) >= MAX_FUNCTIONS:
            raise Unsupported(f"more than {MAX_FUNCTIONS} functions in one")
        name = f"{source.name}.{len(self.callees)}"
        found = _Callee(name, Translator(source, kinds, self.program, {}))
        self.callees[key] = found
        try:
            found.done = found.translator.run(name, statements)
        except Pending:
            del self.callees[key]
            raise
        self.functions.append(found.done)
        return found


def _outside_type(value: object, t: Translator) -> Type:
    try:
        return kind_of(value)
    except Unsupported as error:
        raise t.refusal(f"from outside: {error.reason}") from None


def translate(source: Source, kinds: tuple[Type, ...]) -> Translated:
    """Translates a function for arguments of these types. Raises Unsupported."""
    module = _Module()
    try:
        entry = module.translate(source, kinds, (id(source.python), kinds))
    except RecursionError:
        raise Unsupported("nested too deeply", source.tree.lineno, source.file) from None
    assert entry.done is not None
    functions = [entry.done, *(f for f in module.functions if f is not entry.done)]
    program, outside = module.program, entry.translator.outside
    if program.holder is not None and program.writes_arrays:
        raise program.holder
    written = _written(program, kinds, tuple(outside.values()), entry.translator)
    return Translated(
        functions, (*kinds, *outside.values()), entry.done.result.data, program.failures,
        program.calls, list(program.guards.values()), [program.more[k] for k in outside],
        written, program.pure,
    )  # fmt: skip


def _written(
    program: Program, kinds: tuple[Type, ...], outside: tuple[Type, ...], t: Translator
) -> list[bool]:
    """Which arguments get back what was changed. Refuses what cannot be given back."""
    written = {t.resolve(kind) for kind in program.written}
    t.line = t.source.tree.lineno
    for kind in written:
        inner = [p for p in (*kinds, *outside) if contains_list(p, kind)]
        if any(p != kind for p in inner) or any(p in outside for p in inner):
            raise t.refusal(f"changing a {kind} inside of an argument, or a global one")
        if inner and _holds_containers(kind):
            raise t.refusal(f"changing an argument of type {kind}")
    found = [kind in written for kind in kinds]
    if any(found) and not program.pure:  # after a failure the list would be as it was before
        raise t.refusal("changing both an array and a list or dict of the caller's")
    changed = program.changed_dtypes
    return [
        back or (isinstance(kind, Tensor) and kind.array.dtype in changed)
        for back, kind in zip(found, kinds, strict=True)
    ]


def _holds_containers(kind: Type) -> bool:
    parts = [getattr(kind, n) for n in ("item", "key", "value") if hasattr(kind, n)]
    return any(isinstance(p, List | Dict | Set) for p in parts)
