"""Expressions of arrays: computed element by element, when the result is needed, in one loop."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuvil.ir.names import Value
from cuvil.ir.py_build import PyBuilder, value_block
from cuvil.ir.py_types import (
    BOOL,
    INT,
    Array,
    Element,
    Scalar,
    Tuple,
    Type,
    is_number,
    numeric_join,
)
from cuvil.jit_compiler.frontend import arithmetic
from cuvil.jit_compiler.frontend.arithmetic import COMPARISONS
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import (
    Elements,
    Expression,
    Leaf,
    Node,
    Static,
    Val,
    arrays_of,
    rank_of,
)


def is_array(t: Translator, value: Expression) -> bool:
    """Whether an expression is an array, or is computed from one."""
    if isinstance(value, Static):
        return False
    return isinstance(value, Node | Leaf) or (
        isinstance(value, Val) and isinstance(t.resolve(value.kind), Array)
    )


def leaf(t: Translator, value: Expression) -> Elements:
    """An operand of an expression of arrays; a plain number keeps its type until it is joined."""
    if isinstance(value, Node | Leaf):
        return value
    if isinstance(value, Static) and isinstance(value.value, bool | int | float):
        value = t.literal(value.value)
    if not isinstance(value, Val):
        raise t.refusal("this in an expression of arrays")
    kind = t.resolve(value.kind)
    if not (isinstance(kind, Array) or is_number(kind)) or isinstance(kind, Element):
        raise t.refusal(f"{kind} in an expression of arrays")
    return Leaf(Val(kind, value.ssa, value.literal))


def kind_of(node: Elements) -> Type:
    """The element type of an operand, or a plain number's type."""
    if isinstance(node, Leaf) and not isinstance(node.value.kind, Array | Scalar):
        return node.value.kind
    return node.kind


def cast(t: Translator, node: Elements, target: Scalar) -> Elements:
    """An operand as another element type."""
    if isinstance(node, Leaf) and not isinstance(node.value.kind, Array):
        return Leaf(t.convert(node.value, target))
    return node if node.kind == target else Node("scalar.cast", (node,), target)


def combine(t: Translator, fn: str, left: Expression, right: Expression) -> Node:
    """An operator on two operands."""
    a, b = leaf(t, left), leaf(t, right)
    common = numeric_join((kind_of(a), kind_of(b)))
    if not isinstance(common, Scalar):
        raise t.refusal(f"'{fn}' of these operands")
    literals = tuple(x.value for x in (a, b) if isinstance(x, Leaf))
    arithmetic.check_range(t, common, literals)
    operand = arithmetic.operand_type(t, fn, common)
    if fn == "pow":
        exponent = b.value if isinstance(b, Leaf) else None
        if exponent is None or isinstance(exponent.kind, Array):
            arithmetic.check_power(t, fn, operand, t.literal(-1))
        else:
            arithmetic.check_power(t, fn, operand, exponent)
    result = Scalar("?") if fn in COMPARISONS else operand
    return Node(f"scalar.{fn}", (cast(t, a, operand), cast(t, b, operand)), result)


def unary(t: Translator, fn: str, value: Expression) -> Node:
    """neg, invert, pos or abs."""
    node = leaf(t, value)
    if fn == "pos":
        return Node("scalar.cast", (node,), node.kind)
    if (fn == "neg" and node.kind.dtype == "?") or (
        fn == "invert" and np.dtype(node.kind.dtype).kind == "f"
    ):
        raise t.refusal(f"'{fn}' of {node.kind}")
    return Node(f"scalar.{fn}", (node,), node.kind)


def as_float(t: Translator, value: Expression) -> Elements:
    """An operand as the float type that numpy's functions of floats compute in."""
    node = leaf(t, value)
    if isinstance(node, Leaf) and not isinstance(node.value.kind, Array | Scalar):
        return cast(t, node, Scalar("d"))
    dtype = np.dtype(node.kind.dtype)
    if dtype.kind == "f":
        return node
    if dtype.itemsize == 1:
        raise t.refusal("a function of 8-bit integers, in half precision")
    return cast(t, node, Scalar("f" if dtype.itemsize == 2 else "d"))


def emit(builder: PyBuilder, node: Elements, found: Mapping[int, Value]) -> Value:
    """Code for one element, given the elements of the arrays by the identity of their values."""
    if isinstance(node, Leaf):
        return found.get(id(node.value.ssa), node.value.ssa)
    return builder.apply(node.fn, [emit(builder, a, found) for a in node.args], node.kind)


def body_of(t: Translator, node: Elements) -> tuple[list[Val], PyBuilder, Value]:
    """The arrays that an expression reads, once each, and a block that computes an element."""
    arrays = list({id(a.ssa): a for a in arrays_of(node)}.values())
    block = value_block([a.kind.element for a in arrays])  # type: ignore[attr-defined]
    builder = PyBuilder(block)
    found = {id(a.ssa): argument for a, argument in zip(arrays, block.args, strict=True)}
    return arrays, builder, emit(builder, node, found)


def compute(t: Translator, node: Elements) -> Val:
    """An expression's value: a new array, or one number."""
    if isinstance(node, Leaf):
        return node.value
    if not list(arrays_of(node)):
        return Val(node.kind, emit(t.builder, node, {}))
    arrays, builder, element = body_of(t, node)
    builder.yield_([element])
    kind = Array(node.kind.dtype, rank_of(node), fresh=True)
    site = t.site("ValueError", "operands could not be broadcast together")
    made = t.builder.map([a.ssa for a in arrays], builder.block, kind, site)
    assert made is not None
    return Val(kind, made)


def write(t: Translator, target: Val, value: Expression) -> None:
    """target[...] = value, element by element; what overlaps is computed first."""
    kind = t.resolve(target.kind)
    assert isinstance(kind, Array)
    check_writable(t, kind)
    node = leaf(t, value)
    if isinstance(node, Node) and list(arrays_of(node)):
        node = Leaf(compute(t, node))
    elif isinstance(node, Leaf) and isinstance(node.value.kind, Array):
        node = Leaf(compute(t, Node("scalar.cast", (node,), node.kind)))
    if rank_of(node) > kind.rank:
        raise t.refusal("an assignment that drops axes")
    _store(t, target, cast(t, node, kind.element), site_of_shapes(t))


def site_of_shapes(t: Translator) -> int:
    """The site of operands whose shapes do not fit."""
    return t.site("ValueError", "could not broadcast input array")


def _store(t: Translator, target: Val, node: Elements, site: int) -> None:
    arrays, builder, element = body_of(t, node)
    builder.yield_([element])
    t.builder.map([target.ssa, *(a.ssa for a in arrays)], builder.block, None, site)


def check_writable(t: Translator, kind: Array) -> None:
    """Writing to memory that others see: then the function cannot be run twice."""
    if not kind.writable:
        raise t.refusal("writing to an array that is read-only")
    t.program.writes_arrays = True
    if not kind.fresh:
        t.program.pure = False


def in_place(t: Translator, fn: str, target: Val, value: Expression) -> Val:
    """target op= value"""
    kind = t.resolve(target.kind)
    if not isinstance(kind, Array):
        return compute(t, combine(t, fn, target, value))
    node = combine(t, fn, target, value)
    if not np.can_cast(node.kind.dtype, kind.dtype, "same_kind"):
        raise t.refusal(f"{node.kind} in place of {kind.element}")
    if rank_of(node) > kind.rank:
        raise t.refusal("an assignment that drops axes")
    check_writable(t, kind)
    others = [a for a in arrays_of(node) if a.ssa is not target.ssa]
    if others:
        operand = leaf(t, value)
        copied = Leaf(compute(t, Node("scalar.cast", (operand,), operand.kind)))
        node = combine(t, fn, target, copied.value)
    _store(t, target, cast(t, node, kind.element), site_of_shapes(t))
    return target


def reduce(t: Translator, fn: str, node: Elements, result: Scalar) -> Val:
    """One number from all elements."""
    arrays, builder, element = body_of(t, node)
    builder.yield_([element])
    site = t.site("ValueError", "zero-size array to a reduction, or shapes that do not fit")
    made = t.builder.reduce(fn, [a.ssa for a in arrays], builder.block, result, site)
    return Val(result, made)


def attribute(t: Translator, value: Val, kind: Array, name: str) -> Expression:
    """shape, ndim, size, T, dtype of an array."""
    extents = [t.apply("array.extent", [value], INT, None, [i]) for i in range(kind.rank)]
    if name == "shape":
        return t.tuple_of(extents)
    if name == "ndim":
        return t.literal(kind.rank)
    if name == "size":
        return product(t, extents)
    if name == "T":
        return permute(t, value, kind, tuple(reversed(range(kind.rank))))
    if name == "dtype":
        return Static(np.dtype(kind.dtype), "dtype")
    raise t.refusal(f"the attribute '{name}' of an array")


def product(t: Translator, extents: list[Val]) -> Val:
    """The number of elements of extents."""
    size = extents[0]
    for extent in extents[1:]:
        site = t.site("OverflowError", "an array of more than 2**63 elements")
        size = t.apply("int.mul", [size, extent], INT, site)
    return size


def permute(t: Translator, value: Val, kind: Array, axes: tuple[int, ...]) -> Val:
    """A view with its axes in another order."""
    still = axes == tuple(range(kind.rank))
    made = Array(kind.dtype, len(axes), kind.contiguous and still, kind.writable, kind.fresh)
    return t.apply("array.permute", [value], made, None, axes)


def contiguous(t: Translator, value: Val) -> Val:
    """The array, or a copy of it in C order."""
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    if kind.contiguous:
        return value
    return compute(t, Node("scalar.cast", (Leaf(value),), kind.element))


def shape_items(t: Translator, shape: Val) -> list[Val]:
    """The extents of a shape that was given as an int or a tuple of ints."""
    kind = t.resolve(shape.kind)
    items = [shape]
    if isinstance(kind, Tuple):
        items = [t.item(shape, i) for i in range(len(kind.items))]
    if not all(t.resolve(i.kind) in (INT, BOOL) or isinstance(i.kind, Scalar) for i in items):
        raise t.refusal(f"a shape of type {kind}")
    return [t.convert(i, INT) if t.resolve(i.kind) == BOOL else as_int(t, i) for i in items]


def as_int(t: Translator, value: Val) -> Val:
    """An integer as a Python int: an index or an extent."""
    kind = t.resolve(value.kind)
    if isinstance(kind, Scalar) and np.dtype(kind.dtype).kind in "iu":
        return t.apply("scalar.cast", [value], INT)
    if kind == BOOL:
        return t.convert(value, INT)
    if kind != INT:
        raise t.refusal(f"{kind} as an index")
    return value
