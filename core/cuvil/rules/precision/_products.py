"""What the products of a rewritten graph multiply, and why some are not of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cuvil.ir.build import location_name
from cuvil.ir.graph import Graph
from cuvil.ir.names import Operation
from cuvil.ir.record import tensor_type
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.values import has_record, name_of
from cuvil.rules.precision._codes import Factors
from cuvil.rules.precision.quantized_contract import product_factors
from cuvil.rules.precision.quantized_conv import conv_factors

AFTER = ("widen_weights",)
"""Rules that `products` has to see a graph without: they make numbers of bytes."""


@dataclass(frozen=True)
class Product:
    """A convolution, matrix product or attention. node: the model's; factors: what it multiplies,
    "u8 x i8" or "f32 x f32"; reason: why it is not of bytes, "" where it is."""

    node: str
    kind: str
    factors: str
    reason: str

    @property
    def of_bytes(self) -> bool:
        return not self.reason


_Why = Callable[[Rewriter, Operation], Factors | str]


def _no_bytes(b: Rewriter, op: Operation) -> str:
    return f"there is no {name_of(op)} of bytes"


_WHY: Mapping[str, _Why] = {
    "contract": product_factors,
    "conv": conv_factors,
    "conv_transpose": _no_bytes,
    "attention": _no_bytes,
}


def products(graph: Graph) -> list[Product]:
    """All of a graph, in order. It was rewritten without the rules `AFTER`, and stays as it is."""
    b = Rewriter(graph)
    return [_product(b, op) for op in graph.ops() if has_record(op) and name_of(op) in _WHY]


def _product(b: Rewriter, op: Operation) -> Product:
    kinds = [tensor_type(v).dtype for v in op.operands[:2]]
    reason = ""
    if not all(kind.is_integer and kind.bits == 8 for kind in kinds):
        b.start(op)
        why = _WHY[name_of(op)](b, op)
        reason = (
            why
            if isinstance(why, str)
            else "on floats it takes fewer products, or the rule for bytes was off"
        )
        b.undo()
    return Product(location_name(op), name_of(op), " x ".join(k.name for k in kinds), reason)
