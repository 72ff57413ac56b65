"""Extents that a run finds: a symbol is bound to an element, and what follows may use it."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if len(t) != 1 or t[0].size != 1 or t[0].dtype.name != "i64":
        raise ValueError(f"bind takes one i64, not {shapes(t)}")
    return []


def _nothing(_: Sequence[TensorType], __: Attrs) -> list[TensorType]:
    return []


# A run fails unless the two extents are equal.
REQUIRE = Primitive(
    name="require",
    infer=_nothing,
    evaluate=None,
    attrs={"left": Attr("dim"), "right": Attr("dim")},
    pure=False,
).register()

# From here on, in this block and the regions inside it, `symbol` is the operand's element. A run
# fails unless it is at least `least` and, where there is a `most` (of symbols known before), at
# most that. It has no result and stays where it is.
BIND = Primitive(
    name="bind",
    infer=_infer,
    evaluate=None,
    attrs={"symbol": Attr("str"), "least": Attr("int", 0), "most": Attr("dim", None)},
    pure=False,
).register()
