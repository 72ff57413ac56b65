"""Attributes of a node as Python values, checked against the operator's record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from cuvil.errors import ModelError, UnsupportedError
from cuvil.ops.onnx.registry import REQUIRED, OnnxOp

__all__ = ["arguments", "resolved"]

_LISTS = (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS)


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


def arguments(record: OnnxOp, attrs: Mapping[str, ir.Attr], where: str) -> dict[str, Any]:
    """Keyword arguments for a record: numbers, strings, tuples of them, tensors, graphs.

    UnsupportedError for an attribute that the record does not know, ModelError for one that is
    missing or of another type than its default.
    """
    unknown = sorted(set(attrs) - set(record.attrs))
    if unknown:
        raise UnsupportedError(f"{where}: attribute {', '.join(unknown)} is not supported")
    missing = sorted(n for n, v in record.attrs.items() if v is REQUIRED and n not in attrs)
    if missing:
        raise ModelError(f"{where}: attribute {', '.join(missing)} is missing")
    return {name: _value(attr, record.attrs[name], where) for name, attr in attrs.items()}


def _value(attr: ir.Attr, default: Any, where: str) -> Any:
    value = tuple(attr.value) if attr.type in _LISTS else attr.value
    if isinstance(value, int | float) and isinstance(default, float):
        value = float(value)
    known = default not in (None, REQUIRED) if not isinstance(default, tuple) else True
    if known and type(value) is not type(default):
        raise ModelError(
            f"{where}: attribute {attr.name} is {type(value).__name__}, not "
            f"{type(default).__name__}"
        )
    return value
