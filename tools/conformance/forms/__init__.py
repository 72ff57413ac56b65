"""The forms in which a case of the suite is run, a file each.

A module here that has a `FORM` is a form: no list names them. Its backend is given the case's
model by `prepare`, then the case's inputs by `run` of what that returns, and gives the outputs,
which the suite compares with what it expects. `run` raises `ApartError` where the case has nothing
that the form changes, such as dims that could be free in a model without inputs.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from onnx.backend.base import Backend

from tools.conformance.suite import Outcome

__all__ = ["Form", "forms"]


@dataclass(frozen=True)
class Form:
    """One form.

    name: the word on the command line; tests/conformance/<name>.txt lists the cases that do not
    pass in this form, though they do as the suite has them. title: the column in tables. rank:
    where that column stands. native: whether only compiled code may compute (`guard`). tell:
    what else is to be said of the outcomes, in Markdown. limit: seconds for one case, which ends
    then as one that failed.
    """

    name: str
    title: str
    backend: Callable[[], type[Backend]]
    rank: int = 0
    native: bool = True
    tell: Callable[[Sequence[Outcome]], str] = lambda outcomes: ""
    limit: float = 900.0


def forms() -> dict[str, Form]:
    """All forms by name, in the order of their ranks."""
    modules = [import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    found: list[Form] = [module.FORM for module in modules if hasattr(module, "FORM")]
    return {form.name: form for form in sorted(found, key=lambda form: (form.rank, form.name))}
