"""The places where a condition holds: as many as the run finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import KernelCx


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if len(t) != 1 or t[0].rank != 1 or t[0].dtype.name != "bool":
        raise ValueError(f"positions takes one vector of bools, not {shapes(t)}")
    return [TensorType.of((a.count,), "i64")]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    found = np.flatnonzero(x[0])[: a.count]
    return [np.pad(found, (0, a.count - len(found))).astype(np.int64)]


def _kernel(cx: KernelCx) -> None:
    b, count = cx.b, cx.b.dim(cx.attrs.count)
    cx.tasks(())
    with b.loop(0, count, kind="parallel") as row:
        cx.store(b.const(0, "i64"), (row.iv,))
    with b.loop(0, b.dim(cx.operand_types[0].dims[0]), [b.value(0)]) as loop:
        (place,) = loop.args
        here = b.to_index(cx.operand(0, (loop.iv,)))
        room = b.index("min", here, b.index("max", b.sub(count, place), 0))
        with b.loop(0, room):  # at most once
            b.store(b.from_index(loop.iv, "i64"), cx.result_buffer(), place)
        loop.yield_(b.value(b.add(place, here)))


POSITIONS = Primitive(
    name="positions",  # of true elements, in order; `count` of them, 0 for what is not there
    infer=_infer,
    evaluate=_evaluate,
    attrs={"count": Attr("dim")},
    kernel=_kernel,
    tags=frozenset({"anchor", "dense"}),
).register()
