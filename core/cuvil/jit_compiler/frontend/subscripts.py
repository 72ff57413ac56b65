"""Subscripts: items, slices and parts of arrays, read and written."""

from __future__ import annotations

import ast

from cuvil.ir.py_types import BOOL, INT, NONE, STR, Array, Dict, Element, List, Tensor, Tuple
from cuvil.jit_compiler.frontend import elements, tensors
from cuvil.jit_compiler.frontend.displays import learn_key
from cuvil.jit_compiler.frontend.expressions import (
    as_value,
    expression,
    handler,
    note_write,
    value_of,
)
from cuvil.jit_compiler.frontend.iteration import known
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Static, Val


@handler(ast.Subscript)
def _subscript(t: Translator, node: ast.Subscript) -> Expression:
    base = expression(t, node.value)
    if isinstance(base, Static):
        return _static(t, base, node)
    value = as_value(t, base)
    kind = t.resolve(value.kind)
    if isinstance(kind, Array):
        return read_array(t, value, kind, node.slice)
    if isinstance(kind, Tensor):
        tensors.check_index(t, node.slice)
        whole = tensors.as_array(value, kind)
        return tensors.as_tensor(t, as_value(t, read_array(t, whole, kind.array, node.slice)))
    if isinstance(node.slice, ast.Slice):
        return _slice(t, value, node.slice)
    index = value_of(t, node.slice)
    if isinstance(kind, Tuple):
        return _tuple_item(t, value, kind, index)
    if isinstance(kind, List):
        site = t.site("IndexError", "list index out of range")
        args = [value, elements.as_int(t, index)]
        return t.apply("list.get", args, known(t, kind.item), site)
    if kind == STR:
        site = t.site("IndexError", "string index out of range")
        return t.apply("str.index", [value, elements.as_int(t, index)], STR, site)
    if isinstance(kind, Dict):
        return t.apply("dict.load", [find_key(t, value, index)], known(t, kind.value))
    raise t.refusal(f"an item of {kind}")


def _static(t: Translator, base: Static, node: ast.Subscript) -> Expression:
    index = value_of(t, node.slice)
    if isinstance(base.value, tuple) and index.is_literal:
        return Static(base.value[index.literal], f"{base.path}[{index.literal}]")
    if isinstance(base.value, tuple):
        return _tuple_item(t, t.literal(base.value), t.literal(base.value).kind, index)
    raise t.refusal(f"an item of '{base.path}'")


def _tuple_item(t: Translator, value: Val, kind: object, index: Val) -> Val:
    assert isinstance(kind, Tuple)
    count = len(kind.items)
    if index.is_literal:
        if not -count <= index.literal < count:
            raise t.refusal("a tuple index out of range")
        return t.item(value, index.literal % count)
    if len(set(kind.items)) != 1:
        raise t.refusal("an index of a tuple that only a run tells")
    items = t.apply("list.of", [t.item(value, i) for i in range(count)], List(kind.items[0]))
    site = t.site("IndexError", "tuple index out of range")
    return t.apply("list.get", [items, elements.as_int(t, index)], kind.items[0], site)


def find_key(t: Translator, table: Val, key: Val) -> Val:
    """The place of a key's value; KeyError where it is not in."""
    kind = t.resolve(table.kind)
    assert isinstance(kind, Dict)
    wanted = t.convert(key, learn_key(t, kind.key, key))
    place = t.apply("dict.find", [table, wanted], INT)
    t.do("fail_if_zero", [place], t.site("KeyError", "a key that is not in the dict"))
    return place


def bounds(t: Translator, node: ast.Slice, length: Val) -> tuple[Val, Val, Val]:
    """Start, step and the number of items of a slice, by Python's rules."""
    step = t.literal(1) if node.step is None else value_of(t, node.step)
    if t.resolve(step.kind) == NONE:
        step = t.literal(1)
    if not step.is_literal or step.literal == 0:
        raise t.refusal("a slice whose step only a run tells")
    up = step.literal > 0
    zero, minus = t.literal(0), t.literal(-1)
    last = t.apply("int.sub", [length, t.literal(1)], INT, t.site("OverflowError", ""))
    lowest, highest = (zero, length) if up else (minus, last)

    def clamped(part: ast.expr | None, default: Val) -> Val:
        value = None if part is None else value_of(t, part)
        if value is None or t.resolve(value.kind) == NONE:
            return default
        return t.apply("int.clamp", [elements.as_int(t, value), length, lowest, highest], INT)

    start = clamped(node.lower, lowest if up else highest)
    stop = clamped(node.upper, highest if up else lowest)
    count = t.apply("int.range_length", [start, stop, step], INT, t.site("ValueError", "step"))
    return start, step, count


def _slice(t: Translator, value: Val, node: ast.Slice) -> Val:
    kind = t.resolve(value.kind)
    if isinstance(kind, Tuple):
        parts = [None if p is None else value_of(t, p).literal
                 for p in (node.lower, node.upper, node.step)]  # fmt: skip
        if not all(p is None or isinstance(p, int) for p in parts):
            raise t.refusal("a slice of a tuple that only a run tells")
        return t.tuple_of([t.item(value, i) for i in range(len(kind.items))[slice(*parts)]])
    if kind != STR and not isinstance(kind, List):
        raise t.refusal(f"a slice of {kind}")
    name = "str" if kind == STR else "list"
    start, step, count = bounds(t, node, t.apply(f"{name}.len", [value], INT))
    return t.apply(f"{name}.slice", [value, start, step, count], kind)


# -- arrays ----------------------------------------------------------------------------------------
def _indices(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def read_array(t: Translator, value: Val, kind: Array, node: ast.expr) -> Expression:
    """An element, or a view; a mask or an array of indices is left to the interpreter."""
    parts = _expanded(t, _indices(node), kind)
    if all(isinstance(p, Val) for p in parts):
        return select(t, value, kind, [p for p in parts if isinstance(p, Val)])
    axis = 0
    for part in parts:
        if isinstance(part, ast.Slice):
            value = _slice_axis(t, value, axis, part)
            axis += 1
        elif part is None:
            value = _new_axis(t, value, axis)
            axis += 1
        else:
            value = _drop_axis(t, value, axis, part)
    return value


def _expanded(t: Translator, nodes: list[ast.expr], kind: Array) -> list[Val | ast.Slice | None]:
    """Indices with `...` spelt out; None is a new axis."""
    found: list[Val | ast.Slice | None] = []
    tuples = [value_of(t, n) for n in nodes] if len(nodes) == 1 and isinstance(
        nodes[0], ast.Name
    ) else []  # fmt: skip
    if tuples and isinstance(t.resolve(tuples[0].kind), Tuple):
        found = [t.item(tuples[0], i) for i in range(len(tuples[0].kind.items))]  # type: ignore[attr-defined]
        nodes = []
    for node in nodes:
        if isinstance(node, ast.Slice):
            found.append(node)
        elif isinstance(node, ast.Constant) and node.value is ...:
            rest = kind.rank - sum(not _is_new(t, n) for n in nodes) + 1
            found += [ast.Slice()] * rest
        elif _is_new(t, node):
            found.append(None)
        else:
            found.append(_place(t, value_of(t, node)))
    if sum(p is not None for p in found) > kind.rank:
        raise t.refusal(f"too many indices of an array of rank {kind.rank}")
    return found


def _place(t: Translator, index: Val) -> Val:
    """An index as an int; bools, and torch's bytes, are masks."""
    kind = t.resolve(index.kind)
    if kind == BOOL or (isinstance(kind, Element) and kind.dtype == "B"):
        raise t.refusal(f"{kind} as an index")
    return elements.as_int(t, index)


def _is_new(t: Translator, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    return isinstance(node, ast.Attribute) and node.attr == "newaxis"


def select(t: Translator, value: Val, kind: Array, indices: list[Val]) -> Val:
    """What leading indices select: an element or a view."""
    text = f"index out of bounds for an axis of an array of rank {kind.rank}"
    site = t.site("IndexError", text)
    if len(indices) == kind.rank:
        return t.apply("array.get", [value, *indices], kind.element, site)
    if not indices:
        return value
    rank = kind.rank - len(indices)
    part = Array(kind.dtype, rank, kind.contiguous, kind.writable, kind.fresh)
    return t.apply("array.part", [value, *indices], part, site)


def _slice_axis(t: Translator, value: Val, axis: int, node: ast.Slice) -> Val:
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    if node.lower is node.upper is node.step is None:
        return value
    length = t.apply("array.extent", [value], INT, None, [axis])
    start, step, count = bounds(t, node, length)
    dense = kind.contiguous and axis == 0 and step.literal == 1
    made = Array(kind.dtype, kind.rank, dense, kind.writable, kind.fresh)
    return t.apply("array.slice", [value, start, step, count], made, None, [axis])


def _drop_axis(t: Translator, value: Val, axis: int, index: Val) -> Val:
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    site = t.site("IndexError", f"index out of bounds for axis {axis}")
    if kind.rank == 1:
        return t.apply("array.get", [value, index], kind.element, site)
    dense = kind.contiguous and axis == 0
    made = Array(kind.dtype, kind.rank - 1, dense, kind.writable, kind.fresh)
    return t.apply("array.drop", [value, index], made, site, [axis])


def _new_axis(t: Translator, value: Val, axis: int) -> Val:
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    axes = list(range(kind.rank))
    axes.insert(axis, -1)
    made = Array(kind.dtype, kind.rank + 1, False, kind.writable, kind.fresh)
    return t.apply("array.permute", [value], made, None, axes)


def store_item(t: Translator, target: ast.Subscript, value: Val) -> None:
    """base[index] = value"""
    base = value_of(t, target.value)
    kind = t.resolve(base.kind)
    if isinstance(kind, Array):
        _store_array(t, base, kind, target, value)
        return
    if isinstance(kind, Tensor):
        _store_element(t, base, kind, target, value)
        return
    if isinstance(target.slice, ast.Slice):
        raise t.refusal("assignment to a slice of a list")
    index = value_of(t, target.slice)
    note_write(t, target.value, kind)
    if isinstance(kind, List):
        joined = t.learn(kind.item, value.kind)
        site = t.site("IndexError", "list assignment index out of range")
        held = Val(List(joined), base.ssa)
        t.do("list.set", [held, elements.as_int(t, index), t.convert(value, joined)], site)
    elif isinstance(kind, Dict):
        key, item = learn_key(t, kind.key, index), t.learn(kind.value, value.kind)
        held = Val(Dict(key, item), base.ssa)
        t.do("dict.put", [held, t.convert(index, key), t.convert(value, item)])
    else:
        raise t.refusal(f"assignment to an item of {kind}")


def _store_array(
    t: Translator, base: Val, kind: Array, target: ast.Subscript, value: Expression
) -> None:
    parts = _expanded(t, _indices(target.slice), kind)
    if len(parts) == kind.rank and all(isinstance(p, Val) for p in parts):
        elements.check_writable(t, kind)
        number = as_value(t, value)
        if isinstance(t.resolve(number.kind), Array):
            raise t.refusal("an array in place of one element")
        stored = _element(t, number, kind)
        indices = [p for p in parts if isinstance(p, Val)]
        site = t.site("IndexError", f"index out of bounds for an array of rank {kind.rank}")
        t.do("array.set", [base, *indices, stored], site)
        return
    view = read_array(t, base, kind, target.slice)
    elements.write(t, as_value(t, view), value)


def _store_element(
    t: Translator, base: Val, kind: Tensor, target: ast.Subscript, value: Val
) -> None:
    parts = _expanded(t, _indices(target.slice), kind.array)
    indices = [p for p in parts if isinstance(p, Val)]
    if len(indices) != len(parts) or len(indices) != kind.array.rank:
        raise t.refusal("assignment to a part of a tensor")
    tensors.note_write(t, kind)
    site = t.site("IndexError", f"index out of bounds for a tensor of rank {kind.array.rank}")
    t.do("array.set", [base, *indices, tensors.stored(t, value, kind.array)], site)


def _element(t: Translator, value: Val, kind: Array) -> Val:
    """A number as an element; numpy refuses a Python int that does not fit."""
    return t.convert(value, kind.element)


def delete_item(t: Translator, target: ast.Subscript) -> None:
    """del base[index]"""
    base = value_of(t, target.value)
    kind = t.resolve(base.kind)
    if isinstance(target.slice, ast.Slice):
        raise t.refusal("del of a slice")
    index = value_of(t, target.slice)
    note_write(t, target.value, kind)
    if isinstance(kind, List):
        site = t.site("IndexError", "list assignment index out of range")
        t.apply("list.pop", [base, elements.as_int(t, index)], kind.item, site)
    elif isinstance(kind, Dict):
        wanted = t.convert(index, learn_key(t, kind.key, index))
        place = t.apply("dict.pop", [base, wanted], INT)
        t.do("fail_if_zero", [place], t.site("KeyError", "a key that is not in the dict"))
    else:
        raise t.refusal(f"del of an item of {kind}")
