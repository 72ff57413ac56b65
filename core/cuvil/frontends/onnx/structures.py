"""Sequences and optionals at the border of a graph: as many tensors, named `x[0]`, `x[1]`, ..."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from cuvil.errors import ModelError
from cuvil.frontends.onnx.shapes import element_types
from cuvil.ir.groups import NONE, SEQUENCE, Group
from cuvil.ir.names import Value
from cuvil.ir.types import TensorType
from cuvil.ops.onnx.absent import Absent

__all__ = [
    "Structure", "counted", "flattened", "grouped", "in_order", "input_group", "named",
    "output_group", "regrouped", "structured",
]  # fmt: skip

# What an input is when a model runs: a tensor, a sequence of tensors, or an absent optional.
Structure = TensorType | Sequence[TensorType] | None
_SEVERAL = (ir.SequenceType, ir.OptionalType)
_A_TENSOR = TensorType.of((), "f32")  # any: of what no structure says otherwise


def named(name: str, structure: Structure) -> dict[str, TensorType]:
    """The tensors that an input stands for, by name."""
    if isinstance(structure, TensorType):
        return {name: structure}
    return {f"{name}[{k}]": kind for k, kind in enumerate(structure or ())}


def counted(
    inputs: Sequence[ir.Value], counts: Mapping[str, int], file: str
) -> dict[str, Structure]:
    """What sequences and optionals are that have so many tensors.

    ModelError for names of none, UnsupportedError for elements of unknown rank.
    """
    found: dict[str, Structure] = {}
    several = {str(v.name): v for v in inputs if isinstance(v.type, _SEVERAL)}
    for name, count in counts.items():
        if name not in several:
            there = ", ".join(several) or "none"
            raise ModelError(
                f"{file}: no input called '{name}' is a sequence or an optional; there are: {there}"
            )
        found[name] = _counted(several[name], count, inputs, file)
    return found


def _counted(value: ir.Value, count: int, inputs: Sequence[ir.Value], file: str) -> Structure:
    optional = isinstance(value.type, ir.OptionalType)
    one = optional and isinstance(value.type.elem_type, ir.TensorType)
    if one and count > 1:
        raise ModelError(f"{file}: input {value.name!r} is one tensor or none, not {count}")
    types = element_types(value, count, inputs, file)
    if optional and not types:
        return None
    return types[0] if one else types


def structured(
    inputs: Sequence[ir.Value], structures: Mapping[str, Structure]
) -> tuple[list[ir.Value], dict[str, TensorType]]:
    """(inputs that the file describes, the tensors of those that the caller describes)."""
    plain = [v for v in inputs if v.name not in structures]
    found: dict[str, TensorType] = {}
    for value in inputs:
        if value.name in structures:
            found |= named(str(value.name), structures[str(value.name)])
    return plain, found


def in_order(
    inputs: Sequence[ir.Value], structures: Mapping[str, Structure], types: Mapping[str, TensorType]
) -> dict[str, TensorType]:
    """The types of all tensors by name, as the inputs follow one another."""
    found: dict[str, TensorType] = {}
    for value in inputs:
        name = str(value.name)
        names = named(name, structures[name]) if name in structures else [name]
        found |= {n: types[n] for n in names}
    return found


def grouped(
    inputs: Sequence[ir.Value], structures: Mapping[str, Structure], values: Mapping[str, Value]
) -> Iterator[tuple[ir.Value, Any]]:
    """Every input that the caller describes, with its tensors as the importer holds them."""
    for value in inputs:
        name = str(value.name)
        if name in structures:
            tensors = [values[n] for n in named(name, structures[name])]
            structure = structures[name]
            one = isinstance(structure, TensorType)
            yield value, tensors[0] if one else Absent() if structure is None else tensors


def flattened(name: str, value: Any, where: str) -> dict[str, Value]:
    """The tensors of an output, by name. ModelError for sequences inside sequences."""
    if isinstance(value, Value):
        return {name: value}
    if not all(isinstance(v, Value) for v in value):
        raise ModelError(f"{where} is a sequence of what are not tensors")
    return {f"{name}[{k}]": v for k, v in enumerate(value)}


def input_group(value: ir.Value, structures: Mapping[str, Structure]) -> Group:
    """An input as a caller sees it."""
    name, optional = str(value.name), isinstance(value.type, ir.OptionalType)
    structure = structures.get(name, _A_TENSOR)
    if isinstance(structure, TensorType):
        return Group(name, optional=optional)
    if structure is None:
        return Group(name, NONE, 0, optional)
    return Group(name, SEQUENCE, len(structure), optional)


def output_group(value: ir.Value, found: Any) -> Group:
    """An output as a caller sees it, from what the importer holds."""
    name, optional = str(value.name), isinstance(value.type, ir.OptionalType)
    if isinstance(found, Value):
        return Group(name, optional=optional)
    if isinstance(found, Absent):
        return Group(name, NONE, 0, optional)
    return Group(name, SEQUENCE, len(found), optional)


def regrouped(name: str, results: Mapping[str, Any]) -> Any:
    """An output from the tensors that it was flattened to; none are an empty sequence."""
    if name in results:
        return results[name]
    found: list[Any] = []
    while f"{name}[{len(found)}]" in results:
        found.append(results[f"{name}[{len(found)}]"])
    return found
