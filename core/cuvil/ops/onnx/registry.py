"""ONNX operators as records: one decorated function, a composition of primitives, per version.

    @onnx_op("Gelu", since=20)
    def gelu(cx, x, *, approximate="none"):
        return cx.b.gelu_tanh(x) if approximate == "tanh" else cx.b.gelu(x)

Positional parameters are inputs: without a default they must be there, with `= None` they may be
absent (or ""), `*rest` takes any number. Keyword-only parameters are attributes with ONNX's
defaults; one without a default is required. Where an operator means different things at different
opsets it has several functions: the one with the greatest `since` that is not above the model's
opset serves. A function returns one value, a tuple for several outputs, or NotImplemented where
the function body of ONNX's own schema should serve this use of the operator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "REQUIRED",
    "OnnxOp",
    "add",
    "domains",
    "find",
    "onnx_op",
    "onnx_rows",
    "records",
    "remove",
    "versions",
]

REQUIRED = inspect.Parameter.empty
Compose = Callable[..., Any]


@dataclass(frozen=True)
class OnnxOp:
    """What is known of one version of an operator: how it is called, and its composition.

    required: how many leading inputs must be present. named: how many inputs have a name of their
    own; variadic: whether more may follow, all present.
    attrs: attribute -> default, or REQUIRED.
    accept: (where, input types, attribute -> (kind, value), outputs) -> keyword arguments: checks
    a use by itself, in place of the importer; for operators with a signature of their own.
    """

    name: str
    domain: str
    since: int
    compose: Compose
    required: int
    named: int
    variadic: bool
    attrs: Mapping[str, Any]
    accept: Callable[..., dict[str, Any]] | None = None


_RECORDS: dict[tuple[str, str], dict[int, OnnxOp]] = {}


def onnx_op(name: str, since: int = 1, domain: str = "") -> Callable[[Compose], Compose]:
    """Registers a function as version `since` of an operator; ValueError for a second one."""

    def register(compose: Compose) -> Compose:
        add(_record(name, domain, since, compose))
        return compose

    return register


def add(record: OnnxOp) -> None:
    """Registers a record; ValueError where its version of the operator has one."""
    versions_ = _RECORDS.setdefault((record.domain, record.name), {})
    if record.since in versions_:
        raise ValueError(
            f"ONNX operator {record.domain}.{record.name} version {record.since} is registered "
            "twice"
        )
    versions_[record.since] = record


def remove(record: OnnxOp) -> None:
    """Takes a record away again: for one of a user's own that is declared anew."""
    versions_ = _RECORDS[record.domain, record.name]
    del versions_[record.since]
    if not versions_:
        del _RECORDS[record.domain, record.name]


def domains() -> set[str]:
    """The domains of all records."""
    return {domain for domain, _ in _RECORDS}


def onnx_rows(
    make: Callable[..., Compose], rows: Mapping[str, Any], since: int = 1, domain: str = ""
) -> None:
    """Registers a family: operator -> the argument with which `make` builds its function."""
    for name, argument in rows.items():
        onnx_op(name, since, domain)(make(argument))


def _record(name: str, domain: str, since: int, compose: Compose) -> OnnxOp:
    parameters = list(inspect.signature(compose).parameters.values())[1:]
    inputs = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return OnnxOp(
        name,
        domain,
        since,
        compose,
        required=sum(p.default is p.empty for p in inputs),
        named=len(inputs),
        variadic=variadic,
        attrs={p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY},
    )


def find(domain: str, name: str, opset: int) -> OnnxOp | None:
    """The record that serves an operator at this opset of its domain, if any."""
    known = _RECORDS.get((domain, name), {})
    since = max((v for v in known if v <= opset), default=None)
    return None if since is None else known[since]


def versions(domain: str, name: str) -> list[int]:
    """Versions of an operator that have a record, sorted; empty when there is none."""
    return sorted(_RECORDS.get((domain, name), {}))


def records() -> Iterator[OnnxOp]:
    """All records, by domain, name and version."""
    for _, known in sorted(_RECORDS.items()):
        yield from (known[since] for since in sorted(known))
