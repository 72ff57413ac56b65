"""A table of 256 entries, one for each value of a byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attrs
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import ElementCx

ENTRIES = 256
_BYTES = ("u8", "i8")


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    fits = len(t) == 2 and all(kind.dtype.name in _BYTES for kind in t) and t[1].rank == 1
    if not fits or (isinstance(t[1].dims[0], int) and t[1].dims[0] != ENTRIES):
        raise ValueError(f"lookup does not take {shapes(t)}")
    return [t[1].with_dims(t[0].dims)]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    codes, table = x
    return [table[codes.view(np.uint8)]]


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b, kind = cx.b, cx.operand_types[0].dtype.name
    code = cx.operand(0, index)
    if kind != "u8":
        code = b.scalar("bitcast", code, result="u8", of=kind, to="u8")
    return cx.operand(1, [b.to_index(code)])


LOOKUP = Primitive(
    name="lookup",  # codes, table: for each byte the entry at what its bits are as a number
    infer=_infer,
    evaluate=_evaluate,
    element=_element,
    tags=frozenset({"lookup"}),
).register()
