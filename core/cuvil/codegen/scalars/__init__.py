"""Scalar functions as LLVM IR: `emit`, and the conversions between memory and registers."""

from cuvil.codegen.scalars import (  # noqa: F401  (each module registers its emitters)
    arithmetic,
    convert,
    error_function,
    exponential,
    integer,
    logarithm,
    power,
    remainder,
    trigonometric,
)
from cuvil.codegen.scalars.convert import load_convert, storage_type, store_convert, value_type
from cuvil.codegen.scalars.lowering import emit

__all__ = ["emit", "load_convert", "storage_type", "store_convert", "value_type"]
