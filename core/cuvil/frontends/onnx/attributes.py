"""Attributes of a node as Python values, checked against the operator's record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import onnx_ir as ir

from cuvil.errors import ModelError, UnsupportedError
from cuvil.ops.onnx.registry import REQUIRED, OnnxOp

__all__ = ["arguments", "check_sequences", "plain", "resolved"]

_LISTS = (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS)
_STRUCTURES = (
    ir.AttributeType.TENSOR,
    ir.AttributeType.SPARSE_TENSOR,
    ir.AttributeType.GRAPH,
    ir.AttributeType.TYPE_PROTO,
)


def resolved(node: ir.Node, outer: Mapping[str, ir.Attr]) -> dict[str, ir.Attr]:
    """The node's attributes; references to the function's attributes replaced by their values.

    A reference to an attribute that the call does not give makes the attribute absent.
    """
    found: dict[str, ir.Attr] = {}
    for name, attr in node.attributes.items():
        actual = outer.get(attr.ref_attr_name or "") if attr.is_ref() else attr
        if actual is not None and actual.value is not None:
            found[name] = actual
    return found


def plain(attrs: Mapping[str, ir.Attr]) -> dict[str, tuple[str, Any]]:
    """Each attribute's kind, as records name it, and its value."""
    return {name: (_kind(attr), _plain(attr)) for name, attr in attrs.items()}


def _kind(attr: ir.Attr) -> str:
    word = str(attr.type.name).lower()
    return {"string": "str", "strings": "strs"}.get(word, word)


def _plain(attr: ir.Attr) -> Any:
    return tuple(attr.value) if attr.type in _LISTS else attr.value


def arguments(record: OnnxOp, attrs: Mapping[str, ir.Attr], where: str) -> dict[str, Any]:
    """Keyword arguments for a record: numbers, strings, tuples of them, tensors, graphs.

    UnsupportedError for an attribute that the record does not know, ModelError for one that is
    missing or of another type than the record's.
    """
    unknown = sorted(set(attrs) - set(record.attrs))
    if unknown:
        raise UnsupportedError(f"{where}: attribute {', '.join(unknown)} is not supported")
    missing = sorted(n for n, v in record.attrs.items() if v is REQUIRED and n not in attrs)
    if missing:
        raise ModelError(f"{where}: attribute {', '.join(missing)} is missing")
    hints = _hints(record.compose)
    return {name: _value(attr, hints.get(name, Any), where) for name, attr in attrs.items()}


def check_sequences(record: OnnxOp, inputs: Sequence[Any], where: str) -> None:
    """ModelError where a record's function takes a list of values and gets a tensor."""
    for k, value in enumerate(inputs):
        if k in _lists(record.compose) and not isinstance(value, list | tuple):
            raise ModelError(f"{where}: input {k} is a tensor, but has to be a sequence")


@cache
def _lists(compose: Callable[..., Any]) -> frozenset[int]:
    """The places of the inputs that are lists of values."""
    hints = [hint for name, hint in _hints(compose).items() if name != "return"][1:]
    return frozenset(k for k, hint in enumerate(hints) if get_origin(hint) is list)


@cache
def _hints(compose: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(compose)


def _value(attr: ir.Attr, hint: Any, where: str) -> Any:
    """The attribute's value, of the type that the record's function says it takes."""
    value = _plain(attr)
    kinds = [k for k in get_args(hint) if k is not NoneType] if _is_optional(hint) else [hint]
    (kind,) = kinds
    if kind is Any:
        fits = attr.type in _STRUCTURES
    elif get_args(kind):
        fits = isinstance(value, tuple) and all(_fits(v, get_args(kind)[0]) for v in value)
    else:
        fits = _fits(value, kind)
    if not fits:
        said = "a tensor or graph" if kind is Any else getattr(kind, "__name__", str(kind))
        said = f"a list of {get_args(kind)[0].__name__}" if get_args(kind) else said
        raise ModelError(f"{where}: attribute {attr.name} is {attr.type.name.lower()}, not {said}")
    return float(value) if kind is float else value


def _is_optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


def _fits(value: Any, kind: type) -> bool:
    return isinstance(value, int | float) if kind is float else type(value) is kind
