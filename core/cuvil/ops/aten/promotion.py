"""Numbers and tensors of several types together: torch's rules of promotion."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import SymDim
from cuvil.ir.dtypes import dtype
from cuvil.ir.names import Value as SSAValue
from cuvil.ops.aten.context import Cx, Value

__all__ = ["as_value", "cast", "common", "floating", "is_number", "number", "operands"]

_KINDS = ("bool", "integer", "float")
_DEFAULT = {"bool": "bool", "integer": "i64", "float": "f32"}
_RANKS = {"u8": 0, "i8": 1, "i16": 2, "i32": 3, "i64": 4}
_UNSIGNED = {"i8": "i16", "i16": "i16", "i32": "i32", "i64": "i64"}


def is_number(x: Value) -> bool:
    """Whether an argument is a number or a dim, no tensor."""
    return isinstance(x, int | float | SymDim)


def kind_of(name: str) -> str:
    """The category of an element type: bool < integer < float."""
    record = dtype(name)
    return "bool" if name == "bool" else "float" if record.is_float else "integer"


def number_kind(x: Value) -> str:
    """The category of a number."""
    if isinstance(x, bool):
        return "bool"
    return "float" if isinstance(x, float) else "integer"


def joined(a: str, b: str) -> str:
    """The type that holds two of one category."""
    if a == b:
        return a
    if dtype(a).is_float:
        order = {"f16": 1, "bf16": 1, "f32": 2, "f64": 3}
        if order.get(a, 0) == order.get(b, 0):
            return "f32"
        return max(a, b, key=lambda n: order.get(n, 0))
    if "u8" in (a, b):
        return _UNSIGNED.get(b if a == "u8" else a, "i64")
    return max(a, b, key=lambda n: _RANKS.get(n, 4))


def common(cx: Cx, *args: Value) -> str:
    """The type in which torch computes with these operands.

    Tensors with axes decide; those of rank 0, then numbers, only by a higher category.
    """
    tensors = [cx.type(x) for x in args if isinstance(x, SSAValue)]
    groups: list[list[str]] = [
        [t.dtype.name for t in tensors if t.rank],
        [t.dtype.name for t in tensors if not t.rank],
        [_DEFAULT[number_kind(x)] for x in args if is_number(x)],
    ]
    found = ""
    for group in groups:
        best = _best(group)
        if best and (not found or _KINDS.index(kind_of(best)) > _KINDS.index(kind_of(found))):
            found = best
    return found


def _best(names: Sequence[str]) -> str:
    if not names:
        return ""
    top = max(map(kind_of, names), key=_KINDS.index)
    chosen = [n for n in names if kind_of(n) == top]
    result = chosen[0]
    for name in chosen[1:]:
        result = joined(result, name)
    return result


def floating(cx: Cx, *args: Value) -> str:
    """As `common`, for functions that take integers to the default float."""
    found = common(cx, *args)
    return found if dtype(found).is_float else "f32"


def number(cx: Cx, x: Value, element: str) -> SSAValue:
    """A number or a dim as a scalar."""
    if isinstance(x, SymDim):
        return cast(cx, cx.b.dims(dims=(x,), shape=(), dtype="i64"), element)
    kind = dtype(element)
    if kind.is_integer and not isinstance(x, float):
        width = 1 << kind.value_bits
        x = int(x) % width
        x = x - width if kind.is_signed and x >= width // 2 else x
    return cx.b.scalar(x, element)


def cast(cx: Cx, x: SSAValue, element: str) -> SSAValue:
    """`x` as this element type. Floats go to integers as torch does it: by way of 64 bits."""
    have = cx.type(x).dtype
    if have.name == element:
        return x
    target = dtype(element)
    if have.is_float and target.is_integer and target.size < 4:
        x = cx.b.cast(x, to="i32")
    return cx.b.cast(x, to=element)


def as_value(cx: Cx, x: Value, element: str) -> SSAValue:
    """An operand, tensor or number, in this element type."""
    return cast(cx, x, element) if isinstance(x, SSAValue) else number(cx, x, element)


def operands(cx: Cx, element: str, *args: Value) -> list[SSAValue]:
    """Operands in this element type."""
    return [as_value(cx, x, element) for x in args]
