"""Element-wise primitives: one per row of the scalar table, under the row's name.

Operands broadcast as in numpy: dims are equal or 1, missing leading dims count as 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, broadcast_dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Evaluate, Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import ElementCx, broadcast_index
from cuvil.ops.scalars import SCALARS, Scalar, evaluate

POINTWISE = frozenset({"pointwise"})
_EPSILON = 2.0**-23


def broadcast_dims(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """The numpy shape of an element-wise result; ValueError where extents do not fit."""
    return reduce(_broadcast_pair, shapes, ())


def _broadcast_pair(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    rank = max(len(a), len(b))
    left, right = ((1,) * (rank - len(s)) + tuple(s) for s in (a, b))
    return tuple(broadcast_dim(x, y) for x, y in zip(left, right, strict=True))


def _infer(row: Scalar, t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if len(t) != row.arity:
        raise ValueError(f"{row.name} takes {row.arity} operands, not {len(t)}")
    kind = t[-1].dtype
    expected = row.operand_dtypes(kind)
    if not row.supports(kind) or [x.dtype for x in t] != list(expected):
        raise ValueError(f"{row.name} does not take {shapes(t)}")
    dims, result = broadcast_dims(*(x.dims for x in t)), row.result_dtype(kind, vars(a))
    if result.is_string != (kind.is_string and row.result == "same"):
        raise ValueError(f"{row.name} of {kind} gives no {result}")
    return [TensorType.of(dims, result)]


def _evaluate(row: Scalar, x: Sequence[Any], a: Attrs) -> list[Any]:
    return [evaluate(row.name, *x, **vars(a))]


def _element(row: Scalar, cx: ElementCx, index: Sequence[Index]) -> Value:
    target = cx.result_type.dims
    values = [
        cx.operand(i, broadcast_index(index, t.dims, target))
        for i, t in enumerate(cx.operand_types)
    ]
    params = vars(cx.attrs)
    return cx.b.scalar(row.name, *values, result=cx.result_type.dtype.name, **params)


def _attr(default: Any) -> Attr:
    if default is None:
        return Attr("str")
    return Attr(type(default).__name__, default)


def _record(row: Scalar) -> Primitive:
    infer: Callable[..., Sequence[TensorType]] = partial(_infer, row)
    meaning: Evaluate = partial(_evaluate, row)
    return Primitive(
        name=row.name,
        infer=infer,
        evaluate=meaning,
        attrs={name: _attr(default) for name, default in row.attrs.items()},
        element=partial(_element, row),
        tags=POINTWISE,
        tolerance=(row.ulp + row.slack) * _EPSILON,
    )


for _row in SCALARS.values():
    _record(_row).register()
