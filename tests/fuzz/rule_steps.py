"""Graphs for which rewrite rules are written, as they stand or with one thing changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuvil.ir.build import constant_array
from cuvil.ir.graph import Graph
from cuvil.ir.names import Operation, Value
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.ir.types import TensorType
from cuvil.rewrite.registry import load_rules
from cuvil.rewrite.rule import Case, parse_type
from tests.fuzz.program import Misfit, Program

CHANGES = ("none", "none", "none", "number", "attribute", "operand", "order", "kind", "kind")
RATE = 0.3  # how often an op is changed where its program is one with changes


def cases() -> list[Case]:
    """Examples and near misses of all rules."""
    return [c for rule in load_rules() for c in (*rule.examples, *rule.near_misses)]


def chosen(p: Program, nth: int) -> tuple[Case, str, str]:
    """The cases in turn; what is to be changed in it, and the float type that it gets."""
    found = cases()
    case = found[nth % len(found)]
    change = p.choice(CHANGES)
    kind = p.choice(("f64", "f64", "f16", "bf16")) if change == "kind" else "f32"
    return case, change, kind


def input_types(case: Case, kind: str) -> dict[str, TensorType]:
    """The types of a case's inputs with another float type for f32."""
    return {name: _retyped(parse_type(text), kind) for name, text in case.inputs.items()}


def _retyped(t: TensorType, kind: str) -> TensorType:
    return TensorType.of(t.dims, kind) if t.dtype.name == "f32" else t


def adopt(p: Program, case: Case, change: str, kind: str) -> list[Value]:
    """Builds the case on the program's inputs; what it makes that a test can use."""
    graph = case.graph()
    values: dict[Value, Value] = dict(zip(graph.inputs, list(p.pickable), strict=True))
    made: list[Value] = []
    for op in graph.block.ops:
        if op.name == "cuvil.return":
            break
        if op.regions or not op.results:
            _as_it_is(p, op, values)
            made += [values[r] for r in op.results]
            p.pickable += [values[r] for r in op.results]
            continue
        result = _replayed(p, graph, op, values, change, kind)
        values.update(zip(op.results, result.owner.results, strict=True))  # type: ignore[union-attr]
        if not p.is_constant(result):
            made += result.owner.results  # type: ignore[union-attr]
            p.pickable += result.owner.results  # type: ignore[union-attr]
    return made


def _as_it_is(p: Program, op: Operation, values: dict[Value, Value]) -> None:
    copy = op.clone(dict(values))
    p.b.insert(copy)
    p.settle(copy)
    values.update(zip(op.results, copy.results, strict=True))


def _replayed(
    p: Program, graph: Graph, op: Operation, values: dict[Value, Value], change: str, kind: str
) -> Value:
    """One op again, changed where that fits."""
    if of(op).name == "constant":
        array = constant_array(op, graph.pool)
        element = attrs_of(op).dtype
        if change == "number" and p.chance(RATE):
            array = _other_numbers(p, array)
        return p.const(array, kind if element == "f32" else element)
    operands = [values[v] for v in op.operands]
    attrs = {k: v for k, v in vars(attrs_of(op)).items() if v is not None}
    attrs = {k: kind if v == "f32" else v for k, v in attrs.items()}
    if change != "none" and p.chance(RATE):
        try:
            return p.emit(of(op).name, *_changed(p, change, operands, attrs), **attrs)
        except Misfit:
            attrs = {k: v for k, v in vars(attrs_of(op)).items() if v is not None}
    return p.emit(of(op).name, *operands, **attrs)


def _other_numbers(p: Program, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.kind in "biu":
        return array[..., ::-1] if array.ndim else array
    how = p.number(0, 3)
    if how == 0:
        return array * array.dtype.type(1.0625)
    if how == 1:
        return array + array.dtype.type(1)
    if how == 2:
        return -array
    return array.reshape(-1)[::-1].reshape(array.shape)


def _changed(p: Program, change: str, operands: list[Value], attrs: dict[str, Any]) -> list[Value]:
    """Operands, and attributes in place, with one thing different."""
    if change == "order" and len(operands) > 1:
        return [operands[1], operands[0], *operands[2:]]
    if change == "operand" and operands:
        at = p.number(0, len(operands) - 1)
        like = tensor_type(operands[at])
        alike = [v for v in p.pickable if v.type == like]
        return [*operands[:at], p.choice(alike), *operands[at + 1 :]]
    if change == "attribute" and attrs:
        name = p.choice(sorted(attrs))
        attrs[name] = _other(p, attrs[name])
    return operands


def _other(p: Program, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + p.choice((-1, 1))
    if isinstance(value, float):
        return value * 1.5 + 0.25
    if isinstance(value, tuple) and value and isinstance(value[0], int):
        at = p.number(0, len(value) - 1)
        return (*value[:at], value[at] + p.choice((-1, 1)), *value[at + 1 :])
    if isinstance(value, tuple):
        return value[::-1]
    return {"max": "min", "sum": "mean", "mean": "sum", "min": "max"}.get(value, value)
