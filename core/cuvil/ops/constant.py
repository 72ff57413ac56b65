"""Constants, and tensors made of dimension expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import product
from cuvil.ir.dtypes import dtype
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import ElementCx


def _constant_type(_: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if dtype(a.dtype).is_string:
        raise ValueError("constants of strings are made by 'strings'")
    numbers = a.ints if a.ints is not None else a.floats
    if not a.key and (numbers is None or len(numbers) != product(a.shape)):
        raise ValueError(f"constant of shape {list(a.shape)} needs as many numbers, or a key")
    return [TensorType.of(a.shape, a.dtype)]


CONSTANT = Primitive(
    name="constant",
    infer=_constant_type,
    evaluate=None,  # its value is in the pool: `ir.build.constant_array`
    attrs={
        "key": Attr("str", ""),
        "shape": Attr("ints"),
        "dtype": Attr("str"),
        "floats": Attr("floats", None),
        "ints": Attr("ints", None),
    },
    tags=frozenset({"constant"}),
).register()


def _dims_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    """A chain of selects: such tensors are as long as a shape."""
    element = cx.result_type.dtype.name
    values = [cx.b.from_index(cx.b.dim(d), element) for d in cx.attrs.dims]
    at = cx.b.flatten(index, cx.result_type.dims)
    result = values[0] if values else cx.b.const(0, element)
    for i, value in enumerate(values[1:], 1):
        result = cx.b.scalar("select", cx.b.compare("eq", at, i), value, result, result=element)
    return result


DIMS = Primitive(
    name="dims",  # an integer tensor whose elements are dimension expressions
    infer=lambda _, a: [TensorType.of(a.shape, a.dtype)],
    evaluate=lambda _, a: [np.array(a.dims, dtype(a.dtype).numpy).reshape(a.shape)],
    attrs={"dims": Attr("dims"), "shape": Attr("ints"), "dtype": Attr("str", "i64")},
    element=_dims_element,
).register()


def _broadcast_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    source, target = t[0].dims, a.dims
    pairs = list(zip(source, target[len(target) - len(source) :], strict=False))
    if len(source) > len(target) or any(
        s not in (1, d) and isinstance(s, int) and isinstance(d, int) for s, d in pairs
    ):
        raise ValueError(f"{shapes(t)} does not broadcast to {list(map(str, target))}")
    return [TensorType.of(a.dims, t[0].dtype)]


def _broadcast_to(operands: Sequence[Any], a: Attrs) -> list[Any]:
    return [np.broadcast_to(operands[0], a.dims)]


BROADCAST = Primitive(
    name="broadcast",  # numpy broadcast_to: size-1 and missing leading dims repeat
    infer=_broadcast_type,
    evaluate=_broadcast_to,
    attrs={"dims": Attr("dims")},
    element=lambda cx, index: cx.operand(0, _broadcast(cx, index)),
    tags=frozenset({"view"}),
).register()


def _broadcast(cx: ElementCx, index: Sequence[Index]) -> list[Index]:
    source, target = cx.operand_types[0].dims, cx.result_type.dims
    skip = len(target) - len(source)
    return [0 if s == 1 else i for i, s in zip(index[skip:], source, strict=True)]


IOTA = Primitive(
    name="iota",  # the position along `axis`
    infer=lambda _, a: [TensorType.of(a.dims, a.dtype)],
    evaluate=lambda _, a: [
        np.broadcast_to(
            np.arange(a.dims[a.axis], dtype=dtype(a.dtype).numpy).reshape(
                [-1 if i == a.axis else 1 for i in range(len(a.dims))]
            ),
            a.dims,
        )
    ],
    attrs={"dims": Attr("dims"), "axis": Attr("int", 0), "dtype": Attr("str", "i64")},
    element=lambda cx, index: cx.b.cast(
        cx.b.from_index(index[cx.attrs.axis], "i64"), cx.result_type.dtype.name
    ),
).register()
