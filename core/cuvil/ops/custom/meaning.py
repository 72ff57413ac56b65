"""What the records of a custom operator say: types, numpy meaning, and the call of its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuvil.errors import Error, UnsupportedError
from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, SymDim, known_equal
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.custom.native import Native, NativeRow
from cuvil.ops.custom.signature import Misfit, Signature, used
from cuvil.ops.lowering import KernelCx

__all__ = ["ABSENT", "Dims", "Meaning", "agree"]

ABSENT = "_absent"  # the attribute of the primitive that lists inputs which are not there

Array = np.ndarray[Any, Any]
Dims = tuple[Dim, ...]


@dataclass
class Meaning:
    """functions: what a user gave as "shape", "reference" and "compose". code: the C functions."""

    signature: Signature
    functions: dict[str, Any] = field(default_factory=dict)
    code: Native = field(default_factory=Native)

    def row(self, bound: Mapping[str, str]) -> NativeRow | None:
        """The C function for these types, None where there are none at all. Raises Misfit."""
        return self.code.row(self.signature, bound) if self.code.rows else None

    def infer(self, types: Sequence[TensorType], a: Attrs) -> list[TensorType]:
        """`Primitive.infer`; raises SignatureError."""
        return self.types(*_split(types, a))

    def types(
        self, given: Sequence[TensorType | None], values: Mapping[str, Any]
    ) -> list[TensorType]:
        """The results' types by the shape function. Raises SignatureError."""
        try:
            bound = self.signature.bind(given)
            self.row(bound)
            dims = self._dims(given, values)
        except Misfit as error:
            shown = used(given, len(self.signature.outputs), self.pairs(values))
            raise self.signature.refuse("", str(error), shown) from None
        outs = self.signature.outputs
        return [
            TensorType.of(d, bound.get(p.kind, p.kind)) for p, d in zip(outs, dims, strict=True)
        ]

    def _dims(self, given: Sequence[TensorType | None], values: Mapping[str, Any]) -> list[Dims]:
        function = self.functions.get("shape")
        if function is None:
            raise Misfit("it has no shape function: give it one with .shape")
        try:
            found = function(*(None if t is None else t.dims for t in given), **values)
        except Exception as error:  # of the user's function
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise Misfit(f"its shape function says: {kind}{error}") from error
        wanted = len(self.signature.outputs)
        rows = [found] if wanted == 1 else found
        if not isinstance(rows, list | tuple) or len(rows) != wanted:
            raise Misfit(f"its shape function gives {found!r}, not the extents of {wanted} outputs")
        return [_extents(row) for row in rows]

    def evaluate(self, arrays: Sequence[Array], a: Attrs) -> list[Array]:
        """`Primitive.evaluate`. ValueError where the user's function fails, SignatureError where
        its results are not what is declared."""
        name, function = self.signature.name, self.functions.get("reference")
        if function is None:
            raise ValueError(f"{name} has no numpy meaning: give it one with .reference")
        given, values = _split([_read_only(x) for x in arrays], a)
        try:
            found = function(*given, **values)
        except Error:
            raise
        except Exception as error:  # of the user's function
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"the numpy meaning of {name} failed: {reason}") from error
        several = len(self.signature.outputs) > 1 and isinstance(found, tuple | list)
        results = [np.asarray(r) for r in (found if several else [found])]
        kinds = [None if x is None else TensorType.of(x.shape, from_numpy(x.dtype)) for x in given]
        expected = self.types(kinds, values)
        if [(r.shape, r.dtype) for r in results] != [(t.dims, t.dtype.numpy) for t in expected]:
            shown = used(kinds, results, self.pairs(values))
            reason = f"its numpy meaning does not give {shapes(expected)}"
            raise self.signature.refuse("", f"{name}: {reason}", shown)
        return results

    def lower(self, cx: KernelCx, primitive: str, schema: Mapping[str, Attr]) -> None:
        """One call of the C function, by one task."""
        if not self.code.rows:
            raise UnsupportedError(
                f"{self.signature.name} has no native code: give it a C function (.native) or a "
                "composition (.compose)"
            )
        given, values = _split(list(cx.operand_types), cx.attrs)
        row = self.code.row(self.signature, self.signature.bind(given))
        kinds = [*given, *cx.result_types]
        buffers = [cx.buffer(i) for i in range(len(cx.operand_types))]
        buffers += [cx.result_buffer(i) for i in range(len(cx.result_types))]
        cx.b.extern(
            row.symbol,
            primitive,
            {**values, ABSENT: getattr(cx.attrs, ABSENT)},
            schema,
            [None if t is None else t.dims for t in kinds],
            len(cx.result_types),
            buffers,
            len(self.signature.inputs) - 1 if self.signature.is_variadic else None,
        )

    def check_composed(
        self,
        where: str,
        padded: Sequence[Value | None],
        results: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> None:
        """Raises SignatureError where a composition's results are not what is declared."""
        given = [None if v is None else tensor_type(v) for v in padded]
        bound = self.signature.bind(given)
        outs = self.signature.outputs
        if len(results) != len(outs) or not all(isinstance(v, Value) for v in results):
            raise self.signature.refuse(
                where, f"its composition gives {len(results)} results",
                used(given, len(results), self.pairs(keywords)),
            )  # fmt: skip
        known: list[Dims | None] = [None] * len(outs)
        if "shape" in self.functions:
            known = [t.dims for t in self.types(given, keywords)]
        for i, (p, value, dims) in enumerate(zip(outs, results, known, strict=True)):
            wanted = (bound.get(p.kind, p.kind), dims)
            if not agree(tensor_type(value), *wanted):
                self.refuse_result(where, i, tensor_type(value), wanted, padded, keywords)

    def refuse_result(
        self,
        where: str,
        i: int,
        got: TensorType,
        wanted: tuple[str | None, Dims | None],
        values: Sequence[Value | None],
        keywords: Mapping[str, Any],
    ) -> None:
        """Raises the error for a result of another type than `wanted` (None says nothing)."""
        given = [None if v is None else tensor_type(v) for v in values]
        kind, dims = wanted
        words = [w for w in (kind, dims and f"[{', '.join(map(str, dims))}]") if w]
        made = "composition gives" if "compose" in self.functions else "shape function gives"
        raise self.signature.refuse(
            where,
            f"its {made} output {i} as {shapes([got])}, but {' '.join(words) or '[]'} is declared",
            used(given, [got], self.pairs(keywords)),
        )

    def pairs(self, values: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
        """Attributes with their kinds, for messages."""
        return {name: (self.signature.attrs[name].kind, value) for name, value in values.items()}


def _split(present: Sequence[Any], a: Attrs) -> tuple[list[Any], dict[str, Any]]:
    """What is there for every declared input, None where it is absent; the attributes."""
    values = dict(vars(a))
    absent, waiting = set(values.pop(ABSENT)), iter(present)
    count = len(present) + len(absent)
    given = [None if i in absent else next(waiting, None) for i in range(count)]
    return given, values


def _extents(row: Any) -> Dims:
    good = isinstance(row, list | tuple) and all(
        isinstance(d, int | np.integer | SymDim) and not isinstance(d, bool) for d in row
    )
    if not good:
        raise Misfit(f"its shape function gives {row!r}, not a tuple of extents")
    dims = tuple(d if isinstance(d, SymDim) else int(d) for d in row)
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise Misfit(f"its shape function gives a negative extent: {dims}")
    return dims


def agree(got: TensorType, kind: str | None, dims: Dims | None) -> bool:
    """Whether a type can be what was said of it: None says nothing, nor does a symbol."""
    if kind is not None and got.dtype.name != kind:
        return False
    if dims is None:
        return True
    pairs = list(zip(got.dims, dims, strict=False))
    fit = all(
        known_equal(a, b) or not (isinstance(a, int) and isinstance(b, int)) for a, b in pairs
    )
    return len(got.dims) == len(dims) and fit


def _read_only(array: Array) -> Array:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
