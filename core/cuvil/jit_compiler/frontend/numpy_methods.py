"""Methods of arrays."""

from __future__ import annotations

import ast

import numpy as np

from cuvil.ir.py_types import NONE, STR, Array, List, Scalar, Tuple, dtype_char
from cuvil.jit_compiler.frontend import elements
from cuvil.jit_compiler.frontend.expressions import as_value, expression, value_of
from cuvil.jit_compiler.frontend.iteration import append, for_each, new_list
from cuvil.jit_compiler.frontend.reductions import PLAIN, reduction
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Leaf, Node, Val


def dtype_of(t: Translator, node: ast.expr) -> Scalar:
    """An argument that names an element type."""
    found = expression(t, node)
    value = found.literal if isinstance(found, Val) else getattr(found, "value", None)
    try:
        char = dtype_char(np.dtype(value))
    except TypeError:
        char = ""
    if char not in list("?bBhHiIlLfd"):
        raise t.refusal(f"the dtype {ast.unparse(node)}")
    return Scalar(char)


def literal_axis(t: Translator, node: ast.expr | None) -> int | None:
    """An axis that is written as a number, or None."""
    if node is None:
        return None
    value = value_of(t, node)
    if t.resolve(value.kind) == NONE:
        return None
    if not value.is_literal or type(value.literal) is not int:
        raise t.refusal("an axis that only a run tells")
    return int(value.literal)


def options_of(t: Translator, node: ast.Call, skip: int, *names: str) -> dict[str, ast.expr]:
    """Arguments behind the first `skip`, by position or by name."""
    found = dict(zip(names, node.args[skip:], strict=False))
    if len(node.args) - skip > len(names):
        raise t.refusal(f"this call of {ast.unparse(node.func)}")
    for keyword in node.keywords:
        if keyword.arg not in names or keyword.arg in found:
            raise t.refusal(f"'{keyword.arg}' in a call of {ast.unparse(node.func)}")
        found[keyword.arg] = keyword.value
    return found


def reduced(t: Translator, fn: str, value: Expression, node: ast.Call, skip: int) -> Val:
    """A reduction with its options."""
    names = ("axis", "keepdims") if fn not in ("mean", "sum", "std", "var") else ("axis",)
    options = options_of(t, node, skip, *dict.fromkeys((*names, "keepdims")))
    keep = options.get("keepdims")
    kept = False if keep is None else bool(value_of(t, keep).literal is True)
    return reduction(t, PLAIN[fn], value, literal_axis(t, options.get("axis")), kept)


def array_method(t: Translator, base: Expression, name: str, node: ast.Call) -> Expression:
    """A call of a method of an array."""
    if name in PLAIN:
        return reduced(t, name, base, node, 0)
    if name == "astype":
        options = options_of(t, node, 0, "dtype", "copy")
        return converted(t, base, dtype_of(t, options["dtype"]))
    value = as_value(t, base)
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    if name == "copy":
        return elements.compute(t, Node("scalar.cast", (Leaf(value),), kind.element))
    if name == "fill":
        elements.write(t, value, value_of(t, node.args[0]))
        return t.none()
    if name == "reshape":
        return reshaped(t, value, [value_of(t, a) for a in node.args])
    if name == "transpose":
        return transposed(t, value, [value_of(t, a) for a in node.args])
    if name in ("ravel", "flatten") and not node.args:
        made = reshaped(t, value, [t.literal(-1)])
        is_view = name == "ravel" or not kind.contiguous
        flat = t.resolve(made.kind)
        assert isinstance(flat, Array)
        copy = Node("scalar.cast", (Leaf(made),), flat.element)
        return made if is_view else elements.compute(t, copy)
    if name == "item" and not node.args and not node.keywords:
        raise t.refusal("the method 'item' of an array")
    if name == "tolist" and kind.rank == 1:
        return _to_list(t, value, kind, node)
    raise t.refusal(f"the method '{name}' of an array")


def _to_list(t: Translator, value: Val, kind: Array, node: ast.Call) -> Val:
    made = new_list(t, ("tolist", node.lineno, node.col_offset))
    is_float, is_bool = kind.dtype in "fd", kind.dtype == "?"
    plain = t.literal(0.0 if is_float else is_bool if is_bool else 0).kind

    def take(item: Val) -> None:
        append(t, made, t.apply("scalar.cast", [item], plain))

    for_each(t, ("tolist", node.lineno, node.col_offset), value, take)
    return Val(List(plain), made.ssa)


def converted(t: Translator, value: Expression, target: Scalar) -> Expression:
    """Elements, or a number, as another type."""
    if not elements.is_array(t, value):
        number = as_value(t, value)
        if t.resolve(number.kind) == STR:
            raise t.refusal("a number from a string")
        return t.convert(number, target) if t.resolve(number.kind) != target else number
    node = elements.leaf(t, value)
    return Node("scalar.cast", (node,), target)


def reshaped(t: Translator, value: Val, shape: list[Val]) -> Val:
    """The elements in another shape: a view where they lie in C order, else a copy."""
    if len(shape) == 1:
        shape = elements.shape_items(t, shape[0])
    dense = elements.contiguous(t, value)
    kind = t.resolve(dense.kind)
    assert isinstance(kind, Array)
    if not shape:
        raise t.refusal("an array of rank 0")
    made = Array(kind.dtype, len(shape), True, kind.writable, kind.fresh)
    site = t.site("ValueError", "cannot reshape array")
    return t.apply("array.reshape", [dense, *(elements.as_int(t, s) for s in shape)], made, site)


def transposed(t: Translator, value: Val, axes: list[Val]) -> Val:
    """A view with axes in the order given, or turned round."""
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    if len(axes) == 1 and isinstance(t.resolve(axes[0].kind), Tuple):
        axes = [t.item(axes[0], i) for i in range(len(axes[0].kind.items))]  # type: ignore[attr-defined]
    order = [a.literal for a in axes] or list(reversed(range(kind.rank)))
    if not all(type(i) is int for i in order):
        raise t.refusal("axes that only a run tells")
    order = [i % kind.rank for i in order]
    if sorted(order) != list(range(kind.rank)):
        raise t.refusal(f"axes {order} of an array of rank {kind.rank}")
    return elements.permute(t, value, kind, tuple(order))
