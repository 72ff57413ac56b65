"""Custom operators that are declared in this process, and those that installed packages declare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from cuvil.ops.onnx.registry import OnnxOp, domains, find

if TYPE_CHECKING:
    from cuvil.ops.custom.operator import CustomOp

__all__ = [
    "GROUP",
    "OPERATORS",
    "declared_by",
    "find_operator",
    "hint",
    "load_installed",
    "loading",
]

GROUP = "cuvil.operators"
"""Entry points: a module that declares operators when it is imported, or a function that does."""

OPERATORS: dict[str, CustomOp] = {}
"""By the name of their primitive."""

_PACKAGES: list[str] = []


def declared_by() -> str:
    """The installed package whose declarations are being loaded; "" for a user's own program."""
    return _PACKAGES[-1] if _PACKAGES else ""


@contextmanager
def loading(package: str) -> Iterator[None]:
    """What is declared inside belongs to an installed package."""
    _PACKAGES.append(package)
    try:
        yield
    finally:
        _PACKAGES.pop()


@lru_cache(maxsize=1)
def load_installed() -> tuple[str, ...]:
    """Loads the declarations of installed packages, once; gives what went wrong, a line each."""
    entries = {entry.value: entry for entry in entry_points(group=GROUP)}
    failures = [_load(entry) for _, entry in sorted(entries.items())]
    return tuple(failure for failure in failures if failure)


def find_operator(domain: str, name: str, opset: int) -> OnnxOp | None:
    """As `ops.onnx.registry.find`; installed packages are asked when nothing else is there."""
    found = find(domain, name, opset)
    if found is not None or domain in built_in():
        return found
    load_installed()
    return find(domain, name, opset)


@lru_cache(maxsize=1)
def built_in() -> frozenset[str]:
    """The domains of Cuvil's own operators."""
    return frozenset(domains() - {operator.domain for operator in OPERATORS.values()})


def hint(domain: str, name: str) -> str:
    """What to do about an operator that nothing is known of; "" in a domain of Cuvil's own."""
    if domain in built_in() or domain.startswith("ai.onnx"):
        return ""
    declare = f"declare it before the model is read: cuvil.custom_op('{domain}::{name}', ...)"
    return "; ".join([f"{declare}, or --custom FILE on the command line", *load_installed()])


def _load(entry: EntryPoint) -> str:
    try:
        with loading(entry.module.partition(".")[0]):
            found = entry.load()
            if callable(found):
                found()
    except Exception as error:  # of another's package
        return f"operators of '{entry.name}' ({entry.value}) do not load: {error}"
    return ""
