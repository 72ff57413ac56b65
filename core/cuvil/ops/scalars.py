"""The one table of element-wise scalar functions.

A row says what a function means (numpy), which element types it takes, what it returns and how
close compiled code must come. Named activations carry an `expansion`, a composition of other
rows, from which their meaning and their code both follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from cuvil.ir.dtypes import DTYPES, DType, from_numpy
from cuvil.ir.dtypes import dtype as dtype_of
from cuvil.ops import scalar_expansions as expand
from cuvil.ops import scalar_meaning as meaning
from cuvil.ops.scalar_erf import erf
from cuvil.ops.string_meaning import as_array, as_texts

Array = np.ndarray[Any, Any]

__all__ = ["SCALARS", "Scalar", "evaluate", "scalar"]

NARROW = tuple(t.name for t in DTYPES if t.is_narrow)
FLOATS = tuple(t.name for t in DTYPES if t.is_float and not t.is_narrow)
INTS = tuple(t.name for t in DTYPES if t.is_integer and not t.is_narrow)
SIGNED = tuple(t.name for t in DTYPES if t.is_signed and not t.is_narrow)
NUMBERS = INTS + FLOATS
BOOL = ("bool",)
ALL = BOOL + NUMBERS
STORED = ALL + NARROW  # every type of numbers that lies in memory
MOVED = (*STORED, "string")
ORDERED = (*NUMBERS, "string")  # strings by their bytes, which is by their code points


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar function.

    `dtypes` are the operand types it takes: all operands have one type, but for the first of a
    `conditional` row, which is bool. `result` is 'same' (the operand type), 'bool', or the name
    of the attribute that holds the result type. `attrs` maps attribute names to defaults (None:
    required). Compiled code differs from the accurate result by at most `ulp` units in the last
    place (`ulp64` for f64; one unit for f16 and bf16) plus `slack` times epsilon times
    max(1, |operands|), where an inner sum may cancel; 0 and 0 is exact. `wide` rows are evaluated
    in float64 and rounded, so that the reference is the accurate one. `moves` rows pass bits on,
    whatever they mean.
    """

    name: str
    arity: int
    dtypes: tuple[str, ...]
    numpy: Callable[..., Any] | None = None
    result: str = "same"
    ulp: float = 0.0
    ulp64: float = 0.0
    slack: float = 0.0
    commutative: bool = False
    conditional: bool = False
    wide: bool = False
    moves: bool = False
    attrs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    expansion: Callable[..., Any] | None = None

    @property
    def exact(self) -> bool:
        """True when compiled code returns the very bits of the meaning (any NaN, either zero)."""
        return self.ulp == 0 and self.slack == 0

    def allowed_error(self, reference: Array, *operands: Array) -> Array:
        """|compiled - reference| allowed per element, in float64, for a finite reference.

        `reference` is what `evaluate` returned, itself rounded, which adds half a unit (one for
        f64, whose reference is not computed any wider).
        """
        info = ml_dtypes.finfo(reference.dtype)
        exact = np.abs(reference.astype(np.float64))
        if self.exact:
            return np.zeros_like(exact)
        narrow, double = info.bits == 16, info.bits == 64
        units = 1.0 if narrow else self.ulp64 + 1.0 if double else self.ulp + 0.5
        least = float(info.smallest_subnormal)
        place = np.maximum(np.exp2(np.floor(np.log2(np.maximum(exact, least))) - info.nmant), least)
        size = np.ones_like(exact)
        for operand in operands:
            size = np.maximum(size, np.abs(operand.astype(np.float64)))
        return np.asarray(units * place + size * (self.slack * float(info.eps) + least))

    def operand_dtypes(self, dtype: str | DType) -> tuple[DType, ...]:
        """The types of the operands when the row is applied at `dtype`."""
        one = dtype_of(dtype)
        same = (one,) * self.arity
        return (dtype_of("bool"), *same[1:]) if self.conditional else same

    def result_dtype(self, dtype: str | DType, attrs: Mapping[str, Any] | None = None) -> DType:
        """The result type when the row is applied at `dtype`; KeyError for a missing attribute."""
        if self.result == "same":
            return dtype_of(dtype)
        return dtype_of("bool" if self.result == "bool" else self.attributes(attrs)[self.result])

    def supports(self, dtype: str | DType) -> bool:
        """Whether operands may have type `dtype`."""
        return dtype_of(dtype).name in self.dtypes

    def attributes(self, attrs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`attrs` with defaults filled in; KeyError for an unknown or a missing attribute."""
        given = dict(attrs or {})
        if unknown := given.keys() - self.attrs.keys():
            raise KeyError(f"scalar {self.name} has no attribute {', '.join(sorted(unknown))}")
        merged = {**self.attrs, **given}
        if missing := [name for name, value in merged.items() if value is None]:
            raise KeyError(f"scalar {self.name} needs attribute {', '.join(missing)}")
        return merged


def _exact(name: str, arity: int, dtypes: tuple[str, ...], numpy: Any, **more: Any) -> Scalar:
    return Scalar(name, arity, dtypes, numpy, **more)


def _math(name: str, numpy: Any, ulp: float, ulp64: float = 4.0, **more: Any) -> Scalar:
    return Scalar(name, 1, FLOATS, numpy, ulp=ulp, ulp64=ulp64, wide=True, **more)


def _compare(name: str, dtypes: tuple[str, ...], numpy: Any, **more: Any) -> Scalar:
    return Scalar(name, 2, dtypes, numpy, result="bool", **more)


def _activation(name: str, ulp: float, slack: float, **attrs: float) -> Scalar:
    return Scalar(
        name,
        1,
        SIGNED if name == "relu" else FLOATS,
        ulp=ulp,
        ulp64=ulp,
        slack=slack,
        wide=True,
        attrs=MappingProxyType(attrs),
        expansion=getattr(expand, name),
    )


_ROWS: tuple[Scalar, ...] = (
    _exact("identity", 1, MOVED, np.asarray, moves=True),
    _exact("add", 2, NUMBERS, np.add, commutative=True),
    _exact("sub", 2, NUMBERS, np.subtract),
    _exact("mul", 2, NUMBERS, np.multiply, commutative=True),
    _exact("div", 2, NUMBERS, meaning.div),
    _exact("mod", 2, NUMBERS, meaning.mod),
    _exact("fmod", 2, NUMBERS, meaning.fmod),
    Scalar("pow", 2, NUMBERS, meaning.power, ulp=2.5, ulp64=8.0, wide=True),  # x**4; others: 1
    _exact("min", 2, NUMBERS, np.minimum, commutative=True),
    _exact("max", 2, NUMBERS, np.maximum, commutative=True),
    _exact("neg", 1, NUMBERS, np.negative),
    _exact("abs", 1, NUMBERS, np.abs),
    _exact("sign", 1, NUMBERS, np.sign),
    _exact("floor", 1, FLOATS, np.floor),
    _exact("ceil", 1, FLOATS, np.ceil),
    _exact("round", 1, FLOATS, np.rint),
    _exact("trunc", 1, FLOATS, np.trunc),
    _exact("sqrt", 1, FLOATS, np.sqrt),
    _exact("reciprocal", 1, FLOATS, lambda x: np.true_divide(x.dtype.type(1), x)),
    _math("rsqrt", meaning.rsqrt, 1.5, 1.5),
    _math("exp", np.exp, 1.5),
    _math("exp2", np.exp2, 1.5),
    _math("log", np.log, 1.5),
    _math("log1p", np.log1p, 2.0),
    _math("expm1", np.expm1, 2.0),
    _math("sin", np.sin, 2.0),
    _math("cos", np.cos, 2.0),
    _math("tan", np.tan, 4.0, 6.0),
    _math("asin", np.arcsin, 4.0),
    _math("acos", np.arccos, 4.0),
    _math("atan", np.arctan, 4.0),
    _math("sinh", np.sinh, 4.0),
    _math("cosh", np.cosh, 4.0),
    _math("tanh", np.tanh, 3.0),
    _math("asinh", np.arcsinh, 4.0),
    _math("acosh", np.arccosh, 4.0),
    _math("atanh", np.arctanh, 4.0),
    _math("erf", erf, 4.0),
    _math("sigmoid", meaning.sigmoid, 2.5),
    _exact("and", 2, BOOL + INTS, np.bitwise_and, commutative=True),
    _exact("or", 2, BOOL + INTS, np.bitwise_or, commutative=True),
    _exact("xor", 2, BOOL + INTS, np.bitwise_xor, commutative=True),
    _exact("not", 1, BOOL + INTS, np.invert),
    _exact("shift_left", 2, INTS, meaning.shift_left),
    _exact("shift_right", 2, INTS, meaning.shift_right),
    _compare("eq", (*ALL, "string"), np.equal, commutative=True),
    _compare("ne", (*ALL, "string"), np.not_equal, commutative=True),
    _compare("lt", ORDERED, np.less),
    _compare("le", ORDERED, np.less_equal),
    _compare("gt", ORDERED, np.greater),
    _compare("ge", ORDERED, np.greater_equal),
    _exact("isnan", 1, FLOATS, np.isnan, result="bool"),
    _exact(
        "isinf",
        1,
        FLOATS,
        meaning.isinf,
        result="bool",
        attrs=MappingProxyType({"detect_negative": 1, "detect_positive": 1}),
    ),
    _exact("select", 3, MOVED, meaning.select, conditional=True, moves=True),
    _exact("cast", 1, STORED, meaning.cast, result="to", attrs=MappingProxyType({"to": None})),
    _exact(
        "cast_narrow",  # a cast to a narrow type that is not the usual one
        1,
        ALL,
        meaning.cast_narrow,
        result="to",
        attrs=MappingProxyType({"to": None, "saturate": 1, "round_mode": "up"}),
    ),
    _exact(
        "quantize",  # round(x) + zero, held in the integers of the result's type
        2,
        ("f32",),
        meaning.quantize,
        result="to",
        attrs=MappingProxyType({"to": None}),
    ),
    _exact(
        "fake_quantize",  # the number that such an integer stands for, its zero taken off
        2,
        ("f32",),
        meaning.fake_quantize,
        attrs=MappingProxyType({"to": None}),
    ),
    _exact(
        "bitcast",
        1,
        STORED,
        meaning.bitcast,
        result="to",
        moves=True,
        attrs=MappingProxyType({"of": None, "to": None}),
    ),
    _activation("relu", 0.0, 0.0),
    _activation("leaky_relu", 1.0, 0.0, alpha=0.01),
    _activation("thresholded_relu", 0.0, 0.0, alpha=1.0),
    _activation("elu", 3.0, 0.0, alpha=1.0),
    _activation("selu", 4.0, 0.0, alpha=1.6732632423543772, gamma=1.0507009873554805),
    _activation("celu", 5.0, 0.0, alpha=1.0),
    _activation("gelu", 2.0, 4.0),
    _activation("gelu_tanh", 4.0, 4.0),
    _activation("silu", 4.0, 0.0),
    _activation("softplus", 4.0, 0.0),
    _activation("softsign", 2.0, 0.0),
    _activation("mish", 5.0, 0.0),
    _activation("hardsigmoid", 1.0, 2.0, alpha=0.2, beta=0.5),
    _activation("hardswish", 2.0, 4.0),
    _activation("shrink", 1.0, 1.0, lambd=0.5, bias=0.0),
)

SCALARS: Mapping[str, Scalar] = MappingProxyType({row.name: row for row in _ROWS})


def scalar(name: str) -> Scalar:
    """The row called `name`; KeyError naming it when there is none."""
    try:
        return SCALARS[name]
    except KeyError:
        raise KeyError(f"unknown scalar function {name!r}") from None


class _Numpy(expand.Namespace):
    """Evaluates expansions on arrays; numbers take the type of the arrays."""

    def apply(self, name: str, *args: Any, **attrs: Any) -> Any:
        row = SCALARS[name]
        like = next(a.dtype for a in args if isinstance(a, np.ndarray) and a.dtype != bool)
        arrays = [a if isinstance(a, np.ndarray) else np.asarray(a, like) for a in args]
        return np.asarray(_meaning(row)(*arrays, **row.attributes(attrs)))


def _meaning(row: Scalar) -> Callable[..., Any]:
    if row.expansion is None:
        assert row.numpy is not None
        return row.numpy
    expansion = row.expansion
    return lambda *arrays, **attrs: expansion(_Numpy(), *arrays, **attrs)


def evaluate(name: str, *args: Any, **attrs: Any) -> Array:
    """The meaning of scalar function `name` on arrays: what compiled code is held against.

    Operands share one dtype (the first of `select` is bool) and broadcast. f16 and bf16 are
    computed in float32 and rounded to nearest even; transcendental functions in float64, whatever
    the type, and rounded once. Attributes are keyword arguments. Never warns on values. Raises
    KeyError for an unknown name or attribute, TypeError for dtypes the row does not take.
    """
    row = scalar(name)
    arrays = [as_texts(as_array(a)) for a in args]
    operand = from_numpy(arrays[-1].dtype)
    expected = row.operand_dtypes(operand)
    if [a.dtype for a in arrays] != [t.numpy for t in expected] or not row.supports(operand):
        raise TypeError(f"scalar {name} does not take ({', '.join(str(a.dtype) for a in arrays)})")
    merged = row.attributes(attrs)
    result = row.result_dtype(operand, merged)
    if operand.is_narrow and not row.moves:
        arrays = [a.astype(operand.compute.numpy) for a in arrays]
    elif operand.is_float and operand.name != "f64" and not row.moves:
        wide = np.float64 if row.wide else operand.compute.numpy
        arrays = [a if a.dtype == bool else a.astype(wide) for a in arrays]
    with np.errstate(all="ignore"):
        value = np.asarray(_meaning(row)(*arrays, **merged))
        return value if row.result != "same" else _narrow(value, result)


def _narrow(value: Array, result: DType) -> Array:
    if value.dtype == np.float64 and result.name == "bf16":
        value = value.astype(np.float32)
    return np.asarray(value.astype(result.numpy))
