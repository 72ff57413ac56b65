"""torch's tensors: elements, views and new ones; what else there is runs in torch.

A tensor is translated as the array that it lies in memory as. An element is a tensor of rank 0: its
arithmetic is torch's, not numpy's, and as a view it changes when the tensor does. So elements may
have names only in functions that write no tensors.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    Array,
    Element,
    Scalar,
    Size,
    Tensor,
    Type,
    category,
)
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Val

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def as_array(value: Val, kind: Tensor) -> Val:
    """The array in whose memory a tensor lies."""
    return Val(kind.array, value.ssa)


def as_tensor(t: Translator, found: Val) -> Val:
    """What an index selects of a tensor's array, as torch gives it: a view, or one element."""
    kind = t.resolve(found.kind)
    if isinstance(kind, Array):
        return Val(Tensor(kind), found.ssa)
    return Val(Element(kind.dtype), found.ssa) if isinstance(kind, Scalar) else found


def check_index(t: Translator, node: ast.expr) -> None:
    """Refuses slices whose step is negative, which torch does not have."""
    for part in ast.walk(node):
        step = part.step if isinstance(part, ast.Slice) else None
        if step is not None and not (isinstance(step, ast.Constant) and step.value):
            raise t.refusal("a slice of a tensor by a step that is no positive number")


def stored(t: Translator, value: Val, kind: Array) -> Val:
    """A number as torch stores it in an element."""
    source = t.resolve(value.kind)
    if category(source) > category(kind.element):
        raise t.refusal(f"{source} in a tensor of {np.dtype(kind.dtype).name}")
    if source == FLOAT and kind.dtype == "f":
        _check_range(t, value)
    return t.convert(value, kind.element)


def _check_range(t: Translator, value: Val) -> None:
    """torch refuses floats that float32 does not hold, unless they are infinite."""
    size = t.apply("float.abs", [value], FLOAT)
    large = t.apply("float.gt", [size, t.literal(LARGEST_FLOAT32)], BOOL)
    finite = t.apply("float.isfinite", [value], BOOL)
    wrong = t.apply("bool.and", [large, finite], BOOL)
    text = "value cannot be converted to type float without overflow"
    t.do("fail_if", [wrong], t.site("RuntimeError", text))


def note_write(t: Translator, kind: Tensor) -> None:
    """An element is written."""
    t.program.writes_arrays = True
    if not kind.array.fresh:
        t.program.pure = False
        t.program.changed_dtypes.add(kind.array.dtype)


def check_in_place(t: Translator, before: Type, after: Val) -> None:
    """`x += y` of an element writes to it, and keeps its type."""
    if isinstance(before, Element):
        t.program.writes_arrays = True
        if t.resolve(after.kind) != replace(before, fresh=True):
            raise t.refusal(f"{t.resolve(after.kind)} in place of {before}")


def attribute(t: Translator, value: Val, kind: Tensor, name: str) -> Expression:
    """shape and ndim."""
    if name == "shape":
        return size(t, value, kind)
    if name == "ndim":
        return t.literal(kind.array.rank)
    raise t.refusal(f"the attribute '{name}' of a tensor")


def size(t: Translator, value: Val, kind: Tensor) -> Val:
    """The shape."""
    extents = [extent(t, value, i) for i in range(kind.array.rank)]
    made = t.tuple_of(extents)
    return Val(Size(made.kind.items), made.ssa)  # type: ignore[attr-defined]


def extent(t: Translator, value: Val, axis: int) -> Val:
    """One extent."""
    return t.apply("array.extent", [value], INT, None, [axis])


def method(t: Translator, value: Val, kind: Tensor, name: str, args: list[Val]) -> Expression:
    """size, dim, numel, numpy."""
    rank = kind.array.rank
    if name == "size" and not args:
        return size(t, value, kind)
    if name == "size" and args[0].is_literal and -rank <= args[0].literal < rank:
        return extent(t, value, args[0].literal % rank)
    if name in ("dim", "ndimension") and not args:
        return t.literal(rank)
    if name == "numel" and not args:
        count = extent(t, value, 0)
        for axis in range(1, rank):
            site = t.site("OverflowError", "a tensor of more than 2**63 elements")
            count = t.apply("int.mul", [count, extent(t, value, axis)], INT, site)
        return count
    if name == "numpy" and not args:
        return as_array(value, kind)
    raise t.refusal(f"the method '{name}' of a tensor")


def element_method(t: Translator, value: Val, kind: Element, name: str) -> Val:
    """item."""
    if name != "item":
        raise t.refusal(f"the method '{name}' of a tensor of rank 0")
    plain = (BOOL, INT, FLOAT)[category(kind)]
    return t.apply("scalar.cast", [value], plain)
