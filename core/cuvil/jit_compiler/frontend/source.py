"""A function's source as an AST whose lines are those of its file."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuvil.errors import UnsupportedError


class Unsupported(UnsupportedError):
    """What the compiler leaves to the interpreter. line: in the user's file; construct: what."""

    def __init__(self, reason: str, line: int = 0, file: str = "") -> None:
        place = f"{file}:{line}: " if line else ""
        super().__init__(place + reason)
        self.reason, self.line = reason, line


@dataclass(frozen=True)
class Source:
    """A Python function to compile."""

    python: Callable[..., Any]
    tree: ast.FunctionDef
    file: str

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def parameters(self) -> list[str]:
        return [a.arg for a in (*self.tree.args.posonlyargs, *self.tree.args.args)]

    def look_up(self, name: str) -> tuple[object, tuple[object, str | None]]:
        """What a name outside of the function is, and where it stands: a dict and the name, or a
        cell and None. Raises KeyError."""
        code = self.python.__code__
        if name in code.co_freevars:
            cell = (self.python.__closure__ or ())[code.co_freevars.index(name)]
            try:
                return cell.cell_contents, (cell, None)
            except ValueError:
                raise KeyError(name) from None
        space = self.python.__globals__
        if name in space:
            return space[name], (space, name)
        builtins = space["__builtins__"]
        space = builtins if isinstance(builtins, dict) else vars(builtins)
        return space[name], (space, name)


def read_source(python: Callable[..., Any]) -> Source:
    """The source of a function. Raises Unsupported where there is none that can be compiled."""
    code = getattr(python, "__code__", None)
    if code is None:
        raise Unsupported(f"{python!r} is not a Python function")
    try:
        lines, first = inspect.getsourcelines(python)
    except (OSError, TypeError) as error:
        raise Unsupported(f"there is no source of {python.__name__}: {error}") from None
    text = textwrap.dedent("".join(lines))
    try:
        (tree,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        raise Unsupported(f"{python.__name__} does not stand alone in the source", first) from None
    if not isinstance(tree, ast.FunctionDef):
        raise Unsupported("only functions made by 'def' are compiled", first, code.co_filename)
    ast.increment_lineno(tree, first - 1)
    source = Source(python, tree, code.co_filename)
    _check(source)
    return source


def _check(source: Source) -> None:
    arguments = source.tree.args
    reason = ""
    if arguments.vararg or arguments.kwarg:
        reason = "parameters * and **"
    if arguments.kwonlyargs:
        reason = "keyword-only parameters"
    if len(source.tree.decorator_list) > 1:
        reason = "several decorators"
    for node in ast.walk(source.tree):
        kind = type(node).__name__
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith):
            raise Unsupported(kind.lower(), node.lineno, source.file)
    if reason:
        raise Unsupported(reason, source.tree.lineno, source.file)
