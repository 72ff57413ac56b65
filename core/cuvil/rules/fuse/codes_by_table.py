"""A function of one code is a table of 256 codes."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.ops.lookup import ENTRIES
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import (
    attrs_of,
    dtype_of,
    has_tag,
    is_constant,
    name_of,
    owner,
    rank_of,
)

_CODES = {"u8": np.uint8, "i8": np.int8}
_MOST_OPS = 64
_COSTLY = frozenset(
    [
        "lookup",
        "erf",
        "exp",
        "log",
        "tanh",
        "sigmoid",
        "gelu",
        "gelu_tanh",
        "silu",
        "softplus",
        "mish",
        "pow",
    ]
)
_READERS = ("dequantize_linear", "lookup")
_TABLE = (np.arange(ENTRIES) * 37 % ENTRIES).astype(np.uint8)
_ROUNDINGS = 3  # quantize_linear ops that cost more than a look into a table


@rule(
    "quantize_linear",
    example=[
        case(
            lambda b, x: b.quantize_linear(
                b.erf(b.dequantize_linear(x, b.scalar(0.02, "f32"), b.scalar(100, "u8"))),
                b.scalar(1 / 64, "f32"), b.scalar(128, "u8"), to="u8",
            ),
            x="[B, 40] u8",
        ),
        case(  # what is looked up, and the same codes
            lambda b, x: b.quantize_linear(
                b.mul(b.dequantize_linear(b.lookup(x, b.const(_TABLE)), b.scalar(0.02, "f32")),
                      b.dequantize_linear(x, b.scalar(0.05, "f32"))),
                b.scalar(1 / 64, "f32"), to="i8",
            ),
            x="[B, 40] u8",
        ),
        case(
            lambda b, x: b.quantize_linear(
                b.tanh(b.dequantize_linear(x, b.scalar(0.02, "f32"))), b.scalar(1 / 64, "f32"),
                to="i8",
            ),
            x="[B, 40] i8",
        ),
    ],
    near_miss=[
        case(  # a few instructions
            lambda b, x: b.quantize_linear(
                b.relu(b.dequantize_linear(x, b.scalar(0.02, "f32"))), b.scalar(1 / 64, "f32"),
                to="u8",
            ),
            x="[B, 40] u8",
        ),
        case(  # of two codes
            lambda b, x, y: b.quantize_linear(
                b.erf(b.mul(b.dequantize_linear(x, b.scalar(0.02, "f32")),
                            b.dequantize_linear(y, b.scalar(0.02, "f32")))),
                b.scalar(1 / 64, "f32"), to="i8",
            ),
            x="[B, 40] u8", y="[B, 40] u8",
        ),
    ],
)  # fmt: skip
def codes_by_table(b: Rewriter, op: Operation) -> Value | None:
    """What constants and costly functions make of one tensor of codes is looked up."""
    ops: dict[Operation, None] = {}
    leaves: dict[Value, None] = {}
    if attrs_of(op).to not in _CODES or not _collect(op, ops, leaves) or len(leaves) != 1:
        return None
    if not _worth_it(ops):
        return None
    (codes,) = leaves
    every = np.arange(ENTRIES, dtype=np.uint8).view(_CODES[dtype_of(codes).name])
    known: dict[Value, Value] = {codes: b.const(every)}
    for each in ops:
        known[each.results[0]] = b.like(each, [known.get(v, v) for v in each.operands])
    result: Value = b.lookup(codes, known[op.results[0]])
    return result


def _collect(op: Operation, ops: dict[Operation, None], leaves: dict[Value, None]) -> bool:
    """Adds the ops up to `op`, operands first, and the tensors of codes that they begin with;
    False where something else takes part."""
    if op in ops:
        return True
    for value in op.operands:
        if is_constant(value):
            if rank_of(value) and name_of(op) != "lookup":
                return False
        elif not _from(value, ops, leaves):
            if dtype_of(value).name not in _CODES or name_of(op) not in _READERS:
                return False
            leaves[value] = None
    ops[op] = None
    return len(ops) <= _MOST_OPS


def _from(value: Value, ops: dict[Operation, None], leaves: dict[Value, None]) -> bool:
    """Adds what computes the value, whole or not at all."""
    op = owner(value)
    if op is None or not _function(op):
        return False
    more, first = dict(ops), dict(leaves)
    if not _collect(op, more, first):
        return False
    ops.update(more)
    leaves.update(first)
    return True


def _function(op: Operation) -> bool:
    moves_nothing = has_tag(op, "pointwise") or name_of(op) == "lookup"
    return moves_nothing and len(op.results) == 1 and not op.regions


def _worth_it(ops: dict[Operation, None]) -> bool:
    names = [name_of(op) for op in ops]
    return any(n in _COSTLY for n in names) or names.count("quantize_linear") >= _ROUNDINGS
