"""The source tree as the architecture checks see it: files, functions and imports."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CODE = {".py", ".c", ".h", ".cpp", ".bzl", ".sh"}
_SKIPPED = {"build", "dist", "third_party", "__pycache__"}


@dataclass(frozen=True)
class Function:
    """A function of a Python or C file; `lines` counts from its first line to its last."""

    name: str
    line: int
    lines: int


@dataclass(frozen=True)
class Import:
    """One imported module. `function` is the innermost function around it, or None."""

    module: str
    line: int
    function: str | None


@dataclass(frozen=True)
class File:
    """A text file of the tree; `path` is relative to the root, with slashes."""

    root: Path
    path: str

    @cached_property
    def text(self) -> str:
        return (self.root / self.path).read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def functions(self) -> list[Function]:
        """All functions, nested ones too. Empty for what is neither Python nor C."""
        if self.path.endswith(".py"):
            return list(_python_functions(ast.parse(self.text)))
        if self.path.endswith((".c", ".h")):
            return list(_c_functions(self.lines))
        return []

    @cached_property
    def imports(self) -> list[Import]:
        """All imports of a Python file, also those under TYPE_CHECKING and in functions."""
        package = self.path.removesuffix(".py").split("/")[:-1]
        return list(_imports(ast.parse(self.text), package, None))


def files(root: Path, under: str = "") -> list[File]:
    """All files below `root / under`, sorted, without hidden and generated folders."""
    found = []
    for folder, subfolders, names in os.walk(root / under):
        subfolders[:] = [name for name in subfolders if not _is_skipped(name)]
        place = Path(folder).relative_to(root)
        found += [File(root, (place / name).as_posix()) for name in names if name[0] != "."]
    return sorted(found, key=lambda file: file.path)


def _is_skipped(folder: str) -> bool:
    return folder.startswith((".", "bazel-")) or folder in _SKIPPED


def code(root: Path, under: str = "", suffixes: set[str] = CODE) -> list[File]:
    """Those of `files` that are code, by their ending."""
    return [file for file in files(root, under) if Path(file.path).suffix in suffixes]


def _python_functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield Function(node.name, node.lineno, node.end_lineno - node.lineno + 1)


def _c_functions(lines: list[str]) -> Iterator[Function]:
    """Functions of clang-formatted C: a signature from column 0 up to a closing brace there."""
    start, signature = 0, ""
    for number, line in enumerate(lines, 1):
        if line.startswith("}"):
            match = re.match(r"[^=(]*?(\w+)\s*\(", signature)
            if match and line == "}" and not signature.startswith(("typedef", "#", "extern")):
                yield Function(match[1], start, number - start + 1)
            signature = ""
        elif re.match(r"[A-Za-z_#]", line) and not (signature and signature.endswith("{")):
            continues = signature and not signature.endswith((";", "{"))
            start, signature = (start, signature + line) if continues else (number, line)
            if line.startswith("#"):
                signature = ""
        elif signature and not signature.endswith((";", "{")):
            signature += line.strip()


def _imports(node: ast.AST, package: list[str], function: str | None) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, function)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, package)
            for alias in child.names:
                yield Import(f"{base}.{alias.name}", child.lineno, function)
        else:
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(child, package, child.name if inner else function)


def _absolute(node: ast.ImportFrom, package: list[str]) -> str:
    """The absolute name of a from-import's module; `package` starts at the source folder."""
    if not node.level:
        return node.module or ""
    base = package[: len(package) - node.level + 1]
    return ".".join([*base[base.index("cuvil") :], *filter(None, [node.module])])
