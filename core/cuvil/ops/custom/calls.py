"""The C functions that a planned model calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cuvil.errors import OptionError
from cuvil.ir import nest
from cuvil.ir.types import BufferType
from cuvil.ops.custom.native import Binary, prototype
from cuvil.ops.custom.registry import OPERATORS

__all__ = ["ExternCall", "extern_calls"]


@dataclass(frozen=True)
class ExternCall:
    """A function: the operator it computes, its name and C declaration, where it is.

    package: the installed package that declares the operator, "" for none.
    """

    operator: str
    symbol: str
    prototype: str
    binary: Binary | None
    package: str = ""


def extern_calls(kernels: Iterable[nest.KernelOp]) -> tuple[ExternCall, ...]:
    """The functions that kernels call, each once, by name.

    OptionError where two operators mean different functions by one name.
    """
    found: dict[str, ExternCall] = {}
    for kernel in kernels:
        for op in kernel.body.block.ops:  # it stands in no loop
            if isinstance(op, nest.ExternOp):
                call = _call(op)
                other = found.setdefault(call.symbol, call)
                if other.binary != call.binary or other.prototype != call.prototype:
                    raise OptionError(
                        f"{other.operator} and {call.operator} mean different functions by the "
                        f"name {call.symbol}:\n  {other.prototype}\n  {call.prototype}"
                    )
    return tuple(found[symbol] for symbol in sorted(found))


def _call(op: nest.ExternOp) -> ExternCall:
    operator = OPERATORS[op.meaning.data]
    signature, buffers = operator.signature, iter(op.buffers)
    inputs = len(op.tensor_ranks) - len(signature.outputs)
    parameters = [*signature.spread(inputs), *signature.outputs]
    bound: dict[str, str] = {}
    for p, rank in zip(parameters, op.tensor_ranks, strict=True):
        if rank >= 0:
            kind = next(buffers).type
            assert isinstance(kind, BufferType)
            bound[p.kind] = kind.dtype.name
    missing = {v: "i8" for v in signature.types if v not in bound}  # of absent inputs alone: NULL
    row = operator.meaning.code.row(signature, bound)
    declaration = prototype(signature, row.symbol, bound | missing)
    return ExternCall(signature.name, row.symbol, declaration, row.binary, operator.package)
