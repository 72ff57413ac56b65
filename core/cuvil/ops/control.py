"""Control flow: a choice between two regions, and a loop that carries and stacks values.

Both are ops with regions: build them with `Builder.emit_regions`, which is given the result types.
Regions see the values around them and end with `cuvil.yield`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType

CONTROL = frozenset({"control"})


def _no_infer(_: Sequence[TensorType], __: Attrs) -> Sequence[TensorType]:
    raise ValueError("the result types of control flow are given, not inferred")


def loop_types(
    carried: Sequence[TensorType], scanned: Sequence[TensorType], trip: Dim
) -> list[TensorType]:
    """Result types of a loop: the final carried values, then a stack of every scanned one."""
    return [*carried, *(t.with_dims((trip, *t.dims)) for t in scanned)]


# Operand: a bool of rank 0. Regions: then, else; without arguments; both yield the results.
IF = Primitive(
    name="if", infer=_no_infer, evaluate=None, attrs={}, tags=CONTROL, regions=True
).register()

# Operands: initial carried values. The region's arguments are the carried values; it yields their
# next values, then what is scanned. In its dims attributes (and in nested regions) the symbol
# `symbol` is the number of the iteration. Results: see `loop_types`. It goes on while the number
# is below `trip` (None: without end) and, if `early`, its first carried value, a bool, is true.
LOOP = Primitive(
    name="loop",
    infer=_no_infer,
    evaluate=None,
    attrs={"trip": Attr("dim", None), "symbol": Attr("str"), "early": Attr("bool", False)},
    tags=CONTROL,
    regions=True,
).register()
