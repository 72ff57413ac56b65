"""Folding at import: primitives whose operands are known become constants or dim expressions.

Shape arithmetic is folded where it is built, primitive by primitive, so every ONNX operator that
is a composition of them takes part: `Shape`, `Gather`, `Mul`, `Concat` end as the dims of a
Reshape, and what nobody reads disappears. Known values are small numpy arrays: of numbers, or
object arrays of Dims (of `Ratio`s where the tensor is of floats).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from cuvil.frontends.onnx.ratio import Ratio, UnknownValueError, ratio
from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, SymDim, bounds, dim_max, dim_min, known_equal
from cuvil.ir.dtypes import DType
from cuvil.ir.record import PRIMITIVES
from cuvil.ir.types import TensorType

__all__ = ["LIMIT", "fold", "is_numeric"]

LIMIT = 64  # elements of a known value

Array = np.ndarray[Any, Any]


def is_numeric(array: Array) -> bool:
    """Whether an array holds numbers only, no dims."""
    return bool(array.dtype != object)


def fold(
    name: str, operands: Sequence[Array], types: Sequence[TensorType], attrs: Attrs, out: TensorType
) -> Array | None:
    """The value of a primitive on known operands, or None where it cannot be told.

    Of dtype `out`, or an object array; never raises on values.
    """
    if any(isinstance(d, SymDim) for d in out.dims) or not isinstance(out.size, int):
        return None
    if out.size > LIMIT or out.dtype.is_string or _symbolic_attrs(name, attrs):
        return None  # of objects, only dimensions are known values
    try:
        if all(map(is_numeric, operands)):
            return _numeric(name, operands, attrs, out)
        return _symbolic(name, operands, types, attrs, out)
    except (UnknownValueError, ArithmeticError, ValueError, TypeError, IndexError):
        return None


def _symbolic_attrs(name: str, attrs: Attrs) -> bool:
    """Whether an attribute depends on a symbol; a `dims` op's list is its value."""
    if name == "dims":
        return False
    return any(
        isinstance(value, tuple) and any(isinstance(x, SymDim) for x in value)
        for value in vars(attrs).values()
    )


def _numeric(name: str, operands: Sequence[Array], attrs: Attrs, out: TensorType) -> Array | None:
    if name == "dims":
        return _settled(np.array([*attrs.dims], object).reshape(attrs.shape), out.dtype)
    record = PRIMITIVES[name]
    if record.evaluate is None or not record.pure:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(record.evaluate(operands, attrs)[0])


def _symbolic(
    name: str, operands: Sequence[Array], types: Sequence[TensorType], attrs: Attrs, out: TensorType
) -> Array | None:
    rule = _RULES.get(name)
    if rule is None:
        return None
    arrays = [_as_objects(x, t.dtype) for x, t in zip(operands, types, strict=True)]
    result = rule(arrays, attrs, types, out)
    return None if result is None else _settled(np.asarray(result, object), out.dtype)


def _as_objects(array: Array, kind: DType) -> Array:
    if kind.kind == "bool":
        return array
    if kind.is_float:
        return _each(ratio)(array.astype(object))
    return array.astype(object)


def _each(function: Callable[..., Any]) -> Callable[..., Array]:
    """`function` on elements of object arrays, broadcasting."""
    apply = np.frompyfunc(function, function.__code__.co_argcount, 1)
    return lambda *arrays: np.asarray(apply(*arrays), object)


def _settled(array: Array, kind: DType) -> Array:
    """Numbers in place of objects once no symbol is left."""
    items = [x.num if isinstance(x, Ratio) else x for x in array.ravel()]
    if any(isinstance(x, SymDim) for x in items):
        return array
    plain = [_number(x) for x in array.ravel()]
    return np.array(plain, kind.numpy).reshape(array.shape)


def _number(item: Any) -> Any:
    if not isinstance(item, Ratio):
        return item
    assert isinstance(item.num, int)
    return item.num / item.den


def _at_least_zero(dim: Dim) -> bool:
    low, _ = bounds(dim)
    return low is not None and low >= 0


def _int_div(a: Dim, b: Dim) -> Dim:
    """Division by a positive number, rounded towards zero."""
    if b == 0 or not _at_least_zero(b):
        raise UnknownValueError
    if _at_least_zero(a):
        return a // b
    return dim_max(a, 0) // b - dim_max(-a, 0) // b


def _int_fmod(a: Dim, b: Dim) -> Dim:
    return a - b * _int_div(a, b)


def _int_mod(a: Dim, b: Dim) -> Dim:
    if b == 0 or not _at_least_zero(b):
        raise UnknownValueError
    return a % b


def _div(a: Any, b: Any) -> Any:
    return a / b if isinstance(a, Ratio) else _int_div(a, b)


def _extreme(choose: Callable[..., Dim]) -> Callable[[Any, Any], Any]:
    def pick(a: Any, b: Any) -> Any:
        if isinstance(a, Ratio):
            den = a.den * b.den
            return Ratio(choose(a.num * b.den, b.num * a.den), den)
        return choose(a, b)

    return pick


def _abs(a: Any) -> Any:
    if not _at_least_zero(a.num if isinstance(a, Ratio) else a):
        raise UnknownValueError
    return a


def _compared(test: str) -> Callable[[Any, Any], bool]:
    def decide(a: Any, b: Any) -> bool:
        if isinstance(a, Ratio):
            a, b = a.num * b.den, b.num * a.den
        low, high = bounds(a - b)
        known = {
            "eq": known_equal(a, b),
            "lt": high is not None and high < 0,
            "gt": low is not None and low > 0,
            "le": high is not None and high <= 0,
            "ge": low is not None and low >= 0,
        }
        known["ne"] = known["lt"] or known["gt"]
        if known[test]:
            return True
        opposite = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[test]
        if known[opposite]:
            return False
        raise UnknownValueError

    return decide


def _cast(x: Sequence[Array], _: Attrs, types: Sequence[TensorType], out: TensorType) -> Any:
    if out.dtype.kind == "bool":
        zero = _each(lambda v: ratio(0) if isinstance(v, Ratio) else 0)(x[0])
        return _each(_compared("ne"))(x[0], zero).astype(bool)
    if out.dtype.is_float:
        return _each(ratio)(x[0])
    return _each(_truncated)(x[0])


def _truncated(value: Any) -> Any:
    return _int_div(value.num, value.den) if isinstance(value, Ratio) else value


def _rounded(how: str) -> Callable[[Any], Any]:
    return lambda value: Ratio(getattr(value, how)())


def _reduce(x: Sequence[Array], a: Attrs, *_: Any) -> Any:
    steps = {"sum": operator.add, "prod": operator.mul}
    step = steps.get(a.kind) or _extreme({"max": dim_max, "min": dim_min}[a.kind])
    moved = np.moveaxis(x[0], list(a.axes), range(-len(a.axes), 0))
    rows = moved.reshape(*moved.shape[: moved.ndim - len(a.axes)], -1)
    result = np.empty(rows.shape[:-1], object)
    for index in np.ndindex(result.shape):
        result[index] = reduce(step, rows[index])
    kept = [1 if i in a.axes else n for i, n in enumerate(x[0].shape)]
    return result.reshape(kept) if a.keepdims else result


def _cumulative(x: Sequence[Array], a: Attrs, *_: Any) -> Any:
    if a.kind != "sum" or a.exclusive or a.reverse:
        return None
    return np.add.accumulate(x[0], axis=a.axis)


def _moved(name: str) -> Callable[..., Any]:
    def evaluate(x: Sequence[Array], a: Attrs, *_: Any) -> Any:
        meaning = PRIMITIVES[name].evaluate
        assert meaning is not None
        return meaning(x, a)[0]

    return evaluate


def _gather(x: Sequence[Array], a: Attrs, types: Sequence[TensorType], out: TensorType) -> Any:
    indices = x[1].astype(np.int64)  # TypeError, so unknown, where an index is a dimension
    return _moved("gather")([x[0], indices], a)


def _on(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *_: _each(function)(*x)


def _test(name: str) -> Callable[..., Any]:
    return lambda x, *_: _each(_compared(name))(*x).astype(bool)


_RULES: dict[str, Callable[..., Any]] = {
    "identity": lambda x, *_: x[0],
    "add": _on(lambda a, b: a + b),
    "sub": _on(lambda a, b: a - b),
    "mul": _on(lambda a, b: a * b),
    "div": _on(_div),
    "mod": _on(_int_mod),
    "fmod": _on(_int_fmod),
    "neg": _on(lambda a: -a),
    "abs": _on(_abs),
    "relu": _on(_abs),
    "min": _on(_extreme(dim_min)),
    "max": _on(_extreme(dim_max)),
    "select": lambda x, *_: np.where(x[0], x[1], x[2]),
    "cast": _cast,
    "reduce": _reduce,
    "cumulative": _cumulative,
    "gather": _gather,
    **{name: _on(_rounded(name)) for name in ("floor", "ceil", "round")},
    "trunc": _on(lambda value: Ratio(_truncated(value))),
    **{name: _test(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: _moved(name) for name in ("transpose", "reshape", "slice", "broadcast", "concat")},
}
