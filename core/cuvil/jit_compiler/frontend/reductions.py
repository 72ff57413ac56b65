"""Reductions of arrays: over all elements, or along an axis."""

from __future__ import annotations

import numpy as np

from cuvil.ir.py_types import INT, Array, Scalar, dtype_char
from cuvil.jit_compiler.frontend import elements
from cuvil.jit_compiler.frontend.iteration import for_each
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import (
    Elements,
    Expression,
    Leaf,
    Node,
    Range,
    Val,
    rank_of,
)

PLAIN = {
    "sum": "sum", "prod": "prod", "max": "max", "amax": "max", "min": "min", "amin": "min",
    "any": "any", "all": "all", "argmax": "argmax", "argmin": "argmin", "mean": "mean",
    "std": "std", "var": "var", "count_nonzero": "count_nonzero",
}  # fmt: skip
"""numpy's reductions, by their names as functions and methods."""


def result_type(fn: str, kind: Scalar) -> Scalar:
    """What numpy's reduction gives for elements of a type."""
    dtype = np.dtype(kind.dtype)
    if fn in ("argmax", "argmin", "count_nonzero"):
        return Scalar("l")
    if fn in ("any", "all"):
        return Scalar("?")
    if fn in ("sum", "prod"):
        return Scalar(dtype_char(np.sum(np.zeros(1, dtype)).dtype))
    if fn in ("mean", "std", "var"):
        return kind if dtype.kind == "f" else Scalar("d")
    return kind


def reduction(
    t: Translator, fn: str, value: Expression, axis: int | None = None, keep: bool = False
) -> Val:
    """One of PLAIN's values of an expression of arrays."""
    node = elements.leaf(t, value)
    rank = rank_of(node)
    if rank == 0:
        raise t.refusal(f"numpy.{fn} of a number")
    if axis is None or (rank == 1 and axis in (0, -1)):
        if keep:
            raise t.refusal("keepdims of a reduction to one number")
        return whole(t, fn, node)
    if not -rank <= axis < rank:
        raise t.refusal(f"axis {axis} of an array of rank {rank}")
    return _along(t, fn, elements.compute(t, node), axis % rank, keep)


def whole(t: Translator, fn: str, node: Elements) -> Val:
    """Over all elements."""
    result = result_type(fn, node.kind)
    if fn == "count_nonzero":
        fn, node = "sum", Node("scalar.cast", (node,), Scalar("?"))
    if fn in ("any", "all"):
        node = elements.cast(t, node, Scalar("?"))
    if fn == "mean":
        return _mean(t, node, result)
    if fn in ("std", "var"):
        return _spread(t, fn, node, result)
    if fn in ("sum", "prod") and np.dtype(node.kind.dtype).kind != "f":
        node = elements.cast(t, node, result)
    return elements.reduce(t, fn, node, result)


def _size(t: Translator, node: Elements) -> Val:
    """How many elements an expression has; Pending shapes are computed first."""
    value = elements.compute(t, node)
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    extents = [t.apply("array.extent", [value], INT, None, [i]) for i in range(kind.rank)]
    return elements.product(t, extents)


def _mean(t: Translator, node: Elements, result: Scalar) -> Val:
    if isinstance(node, Node):
        node = Leaf(elements.compute(t, node))
    total = elements.reduce(t, "sum", elements.cast(t, node, _wide(node)), Scalar("d"))
    size = t.convert(_size(t, node), Scalar("d"))
    return t.convert(t.apply("scalar.truediv", [total, size], Scalar("d")), result)


def _wide(node: Elements) -> Scalar:
    return node.kind if np.dtype(node.kind.dtype).kind == "f" else Scalar("d")


def _spread(t: Translator, fn: str, node: Elements, result: Scalar) -> Val:
    """The variance about the mean, or its root."""
    value = Leaf(elements.compute(t, elements.cast(t, node, _wide(node))))
    mean = whole(t, "mean", value)
    away = elements.combine(t, "sub", value.value, mean)
    square = elements.combine(t, "mul", away, away)
    variance = whole(t, "mean", square)
    if fn == "std":
        variance = t.apply("scalar.sqrt", [variance], result)
    return variance


def _along(t: Translator, fn: str, value: Val, axis: int, keep: bool) -> Val:
    """One number per line along an axis, by loops over the other axes."""
    kind = t.resolve(value.kind)
    assert isinstance(kind, Array)
    rest = [i for i in range(kind.rank) if i != axis]
    lines = elements.permute(t, value, kind, (*rest, axis))
    extents = [t.apply("array.extent", [value], INT, None, [i]) for i in rest]
    made_kind = Array(result_type(fn, kind.element).dtype, len(rest), fresh=True)
    site = t.site("ValueError", "an array that is too large")
    made = t.apply("array.new", extents, made_kind, site, [0])
    inside = t.site("IndexError", "index out of bounds")
    one, zero = t.literal(1), t.literal(0)

    def nest(indices: list[Val]) -> None:
        if len(indices) < len(rest):
            span = Range(zero, extents[len(indices)], one)
            key = ("along", t.line, fn, axis, len(indices))
            for_each(t, key, span, lambda i: nest([*indices, i]))
            return
        line_kind = Array(kind.dtype, 1, t.resolve(lines.kind).contiguous)  # type: ignore[attr-defined]
        line = t.apply("array.part", [lines, *indices], line_kind, inside)
        t.do("array.set", [made, *indices, whole(t, fn, Leaf(line))], inside)

    nest([])
    if keep:
        axes = list(range(len(rest)))
        axes.insert(axis, -1)
        return elements.permute(t, made, made_kind, tuple(axes))
    return made
