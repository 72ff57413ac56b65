"""How an op on constants becomes a constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuvil.errors import ModelError
from cuvil.ir.attrs import Attrs
from cuvil.ir.build import location_name
from cuvil.ir.names import Operation, Value
from cuvil.ir.record import Primitive, of
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.values import attrs_of, dtype_of, name_of, rank_of, tensor_type

DATA_ERRORS = (ValueError, IndexError, ArithmeticError)


def is_weights_of_codes(op: Operation) -> bool:
    """Whether an op makes a matrix of floats from one of bytes: products may take the bytes."""
    bytes_of = dtype_of(op.operands[0]).size == 1 if op.operands else False
    return name_of(op) == "dequantize_linear" and bytes_of and rank_of(op.results[0]) > 1


def as_recipe(b: Rewriter, op: Operation) -> Value | None:
    """The result of an op on constants as a recipe of the pool; None where the pool lacks them."""
    record, attrs, out = of(op), attrs_of(op), tensor_type(op.results[0])
    sources = [b.pool_constant(v) for v in op.operands]
    if any(s is None for s in sources):
        return None
    recipe = b.pool.add_recipe(
        f"cuvil.{record.name}",
        vars(attrs),
        [s for s in sources if s],
        out.dtype.name,
        [d for d in out.dims if isinstance(d, int)],
        _named(record, attrs, location_name(op)),
    )
    return b.pooled(recipe.key)


def _named(
    record: Primitive, attrs: Attrs, where: str
) -> Callable[[list[Any]], np.ndarray[Any, Any]]:
    """The evaluation of a recipe, long after its op is gone: errors name the node."""

    def evaluate(arrays: list[Any]) -> np.ndarray[Any, Any]:
        try:
            return evaluated(record, arrays, attrs)
        except DATA_ERRORS as error:
            raise ModelError(f"node '{where}': constants that do not fit: {error}") from error

    return evaluate


def evaluated(record: Primitive, arrays: list[Any], attrs: Attrs) -> np.ndarray[Any, Any]:
    """What an op gives on arrays."""
    assert record.evaluate is not None
    with np.errstate(all="ignore"):
        return np.asarray(record.evaluate(arrays, attrs)[0])
