"""Tensors of scaled codes (bytes), as the rules to integer products see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.values import (
    attrs_of,
    dims_of,
    dtype_of,
    is_constant,
    name_of,
    number,
    owner,
    rank_of,
)

GROUP = 4  # codes that one instruction multiplies
LEAST = 16  # terms of a sum that lie together: with fewer nothing is gained


@dataclass(frozen=True)
class Codes:
    """(codes - zero) * scale. codes: u8 or i8. zero: an i32 scalar, None for 0. scale: f32, None
    where the tensor is of integers."""

    codes: Value
    zero: Value | None
    scale: Value | None


def fits(terms: Dim) -> bool:
    """Whether so many terms are whole groups, and enough of them."""
    return isinstance(terms, int) and terms >= LEAST and terms % GROUP == 0


def too_few(terms: Dim) -> str:
    """Why bytes are not worth it where not `fits(terms)`."""
    return f"{terms} terms lie together, no multiple of {GROUP} of at least {LEAST}"


def rows_of(b: Rewriter, value: Value) -> Codes | str:
    """What the rows of a product are made of, their codes as u8; why not, where that is not bytes
    with one zero point."""
    found = _codes(b, value)
    if found is None:
        return "its input is not made of bytes with one zero point"
    if found.scale is not None and rank_of(found.scale):
        return "its input has a scale per channel"
    if dtype_of(found.codes).name == "u8":
        return found
    up = b.scalar(128, "i32")
    codes = b.cast(b.add(b.cast(found.codes, to="i32"), up), to="u8")
    return Codes(codes, up if found.zero is None else b.add(found.zero, up), found.scale)


def matrix_of(b: Rewriter, value: Value) -> Codes | str:
    """Constant weights, their codes as i8 around zero; why not, where they are not."""
    if is_constant(value):
        return _small_integers(b, value) or "its weights are numbers, not bytes"
    found = _codes(b, value)
    if found is None:
        return "no operand is constant bytes"
    if not is_constant(found.codes):
        return "both operands are found by the run"
    unsigned = dtype_of(found.codes).name == "u8"
    zero = 0 if found.zero is None else number(found.zero)
    if zero != (128 if unsigned else 0):
        return "the zero point of its weights is not in the middle"
    if not unsigned:
        return Codes(found.codes, None, found.scale)
    down = b.sub(b.cast(found.codes, to="i32"), b.scalar(128, "i32"))
    return Codes(b.cast(down, to="i8"), None, found.scale)


def _small_integers(b: Rewriter, value: Value) -> Codes | None:
    """A constant of i32 that bytes hold: an op on constants that was folded."""
    array = b.array(value)
    if dtype_of(value).name != "i32" or array is None or not array.size:
        return None
    if array.min() < -128 or array.max() > 127:
        return None
    return Codes(b.cast(value, to="i8"), None, None)


@dataclass(frozen=True)
class Factors:
    """What a product is made of: rows by a constant matrix, whose scale is per column or one."""

    rows: Codes
    matrix: Codes
    scale: Value | None


def factors_of(b: Rewriter, x: Value, w: Value, axis: int) -> Factors | str:
    """The factors of a product of x and w; why not, where they are not bytes of the right kind.

    axis: of w, along which its columns lie.
    """
    matrix = matrix_of(b, w)
    if isinstance(matrix, str):
        return matrix
    rows = rows_of(b, x)
    if isinstance(rows, str):
        return rows
    if (rows.scale is None) != (matrix.scale is None):
        return "one operand is of integers, the other of scaled codes"
    scale = None
    if matrix.scale is not None:
        scale = scale_along(b, matrix.scale, axis, rank_of(w))
        if scale is None:
            return "the scale of its weights is not one per column"
    return Factors(rows, matrix, scale)


def finished(b: Rewriter, total: Value, f: Factors, axis: int) -> Value:
    """The numbers that sums of codes stand for, their zero point taken off."""
    dims = list(dims_of(f.matrix.codes))
    letters = "abcdefgh"[: len(dims)]
    summed, column = letters[:axis] + letters[axis + 1 :], letters[axis]
    sums = b.contract(
        ones(b, dims[:axis] + dims[axis + 1 :]), f.matrix.codes,
        spec=f"{summed},{letters}->{column}", accumulate="i32",
    )  # fmt: skip
    return scaled(b, corrected(b, total, f.rows, sums), f.rows, f.scale)


def corrected(b: Rewriter, total: Value, rows: Codes, column_sums: Value) -> Value:
    """The sum of (code - zero) * weight, from that of code * weight."""
    if rows.zero is None:
        return total
    result: Value = b.sub(total, b.mul(rows.zero, column_sums))
    return result


def scaled(b: Rewriter, total: Value, rows: Codes, scale: Value | None) -> Value:
    """Sums of codes as the numbers that they stand for. scale: of the weights, to broadcast."""
    if rows.scale is None or scale is None:
        return total
    result: Value = b.mul(b.cast(total, to="f32"), b.mul(rows.scale, scale))
    return result


def ones(b: Rewriter, dims: Any) -> Value:
    """A constant of codes 1."""
    result: Value = b.const(np.ones([int(d) for d in dims], np.uint8))
    return result


def _codes(b: Rewriter, value: Value) -> Codes | None:
    op = owner(value)
    if op is None:
        return None
    name = name_of(op)
    if name == "dequantize_linear":
        return _dequantized(b, op)
    if name == "cast":
        return Codes(op.operands[0], None, None) if _bytes(op.operands[0]) else None
    if name in ("add", "sub") and dtype_of(value).name == "i32":
        return _shifted(b, op, name)
    if name == "pad":
        return _padded(b, op)
    if name in ("reshape", "transpose"):
        return _moved(b, op)
    return None


def _bytes(value: Value) -> bool:
    return dtype_of(value).name in ("u8", "i8")


def _dequantized(b: Rewriter, op: Operation) -> Codes | None:
    codes, scale, *zero = op.operands
    if not _bytes(codes) or dtype_of(scale).name != "f32":
        return None
    if not zero or _all_zero(b, zero[0]):
        return Codes(codes, None, scale)
    if not rank_of(zero[0]):
        return Codes(codes, b.cast(zero[0], to="i32"), scale)
    all_zeros = b.array(zero[0]) if is_constant(zero[0]) else None
    if all_zeros is None or np.unique(all_zeros).size != 1:
        return None
    return Codes(codes, b.scalar(int(all_zeros.reshape(-1)[0]), "i32"), scale)


def _all_zero(b: Rewriter, value: Value) -> bool:
    array = b.array(value) if is_constant(value) else None
    return array is not None and not array.any()


def _shifted(b: Rewriter, op: Operation, name: str) -> Codes | None:
    """A cast code minus a scalar, or plus a constant one."""
    first, zero = op.operands
    inner = owner(first)
    if inner is None or name_of(inner) != "cast" or not _bytes(inner.operands[0]):
        return None
    if _all_zero(b, zero):
        return Codes(inner.operands[0], None, None)
    if rank_of(zero):
        return None
    if name == "sub":
        return Codes(inner.operands[0], zero, None)
    return (
        Codes(inner.operands[0], b.scalar(-number(zero), "i32"), None)
        if is_constant(zero)
        else None
    )


def _moved(b: Rewriter, op: Operation) -> Codes | None:
    found = _codes(b, op.operands[0])
    if found is None or (found.scale is not None and rank_of(found.scale)):
        return None
    return Codes(b.like(op, [found.codes]), found.zero, found.scale)


def _padded(b: Rewriter, op: Operation) -> Codes | None:
    """Zeros around an image are its zero point around its codes."""
    attrs, (image, fill) = attrs_of(op), op.operands
    if attrs.mode != "constant" or not is_constant(fill) or number(fill) != 0:
        return None
    found = _codes(b, image)
    if found is None or (found.scale is not None and rank_of(found.scale)):
        return None
    kind = dtype_of(found.codes).name
    edge = b.scalar(0, kind) if found.zero is None else b.cast(found.zero, to=kind)
    padded = b.pad(found.codes, edge, low=attrs.low, high=attrs.high, mode="constant")
    return Codes(padded, found.zero, found.scale)


def scale_along(b: Rewriter, scale: Value, axis: int, rank: int) -> Value | None:
    """A scale of weights as a vector along their axis of columns, or a scalar; None where it
    differs along others."""
    dims = dims_of(scale)
    if not dims:
        return scale
    spread = [1] * (rank - len(dims)) + list(dims)
    if any(d != 1 for i, d in enumerate(spread) if i != axis):
        return None
    result: Value = b.reshape(scale, dims=(spread[axis],) if spread[axis] != 1 else ())
    return result
