"""`cuvil.custom_op`: the declaration of an operator, and the records that it makes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from time import time_ns
from typing import Any

from cuvil.errors import OptionError, SignatureError
from cuvil.ir.attrs import Attr
from cuvil.ir.build import Builder
from cuvil.ir.names import Value
from cuvil.ir.record import Primitive, tensor_type
from cuvil.ir.types import TensorType
from cuvil.ops.custom.meaning import ABSENT, Meaning, agree
from cuvil.ops.custom.native import binary, prototype
from cuvil.ops.custom.registry import OPERATORS, declared_by
from cuvil.ops.custom.signature import Misfit, Signature, kind_of, used
from cuvil.ops.lowering import KernelCx
from cuvil.ops.onnx import registry
from cuvil.ops.onnx.context import Cx

__all__ = ["CustomOp", "custom_op"]

_NAME = re.compile(r"(\w+(?:\.\w+)*)::(\w+)", re.ASCII)
_OWN = ("ai.onnx", "ai.onnx.ml", "com.microsoft")

Function = Callable[..., Any]
Path = str | os.PathLike[str]


def custom_op(
    name: str,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    attributes: Mapping[str, Any] | None = None,
    types: Mapping[str, Sequence[str]] | None = None,
    since: int = 1,
    pure: bool = True,
    tolerance: float = 1e-5,
) -> CustomOp:
    """Declares an operator of a domain of your own; what comes back is completed by its methods.

    name: "domain::Op". inputs, outputs: "TYPE", "NAME: TYPE", for an input that may be left out
    "NAME: TYPE?", for a last input that stands for several "NAME: TYPE..."; a type is an element
    type (f32, i64, ...) or a variable with a capital letter. types: the element types that a
    variable may stand for. attributes: name -> default, or int, float, bool, str or list of one of
    them where it must be given. since: the version of the domain from which on this meaning holds.
    pure: whether equal inputs always give equal outputs and nothing else happens; calls of an
    operator that is not are neither folded, merged nor left out. tolerance: relative error that
    native code may show against the numpy meaning.

    As a decorator it takes the numpy meaning: `custom_op(...)(f)` is `custom_op(...).reference(f)`.
    Raises OptionError for a declaration that cannot be, or one that is there already.
    """
    signature = Signature.of(name, inputs, outputs, attributes, types)
    frame = sys._getframe(1)
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return CustomOp(signature, since, pure, tolerance, place)


class CustomOp:
    """An operator of a user's own. The methods that complete it return the function or itself.

    signature: as declared. primitive: its name among the primitives, and as a method of `Builder`.
    package: the installed package that declares it, "" for none. declared_ns: when.
    """

    def __init__(
        self, signature: Signature, since: int, pure: bool, tolerance: float, place: str
    ) -> None:
        match = _NAME.fullmatch(signature.name)
        if match is None or match[1] in _OWN:
            raise OptionError(
                f"{signature.name!r} is no name for a custom operator: expected 'domain::Op' with "
                "a domain of your own, such as 'com.acme::Swirl'"
            )
        self.signature, self.since, self.place, self.package = signature, since, place, ""
        self.domain, self.name = match[1], match[2]
        stem = f"{self.domain}_{self.name}".replace(".", "_")
        self.primitive = stem if since == 1 else f"{stem}_v{since}"
        if self.primitive in OPERATORS:
            raise OptionError(
                f"{signature.name} is declared already, at {OPERATORS[self.primitive].place}: "
                "call .remove() of that one first"
            )
        self.package, self.declared_ns = declared_by(), time_ns()
        self.meaning = Meaning(signature)
        self._narrowed = {v for v, kinds in signature.types.items() if kinds}
        self.record = Primitive(
            name=self.primitive, infer=self.meaning.infer, evaluate=self.meaning.evaluate,
            attrs={**signature.attrs, ABSENT: Attr("ints", ())}, kernel=self._lower,
            tags=frozenset({"opaque", "dense"}), tolerance=tolerance, pure=pure,
        ).register()  # fmt: skip
        self._onnx = registry.OnnxOp(
            self.name, self.domain, since, self._import, 0, 0, True, {}, self.accept
        )
        registry.add(self._onnx)
        OPERATORS[self.primitive] = self

    # -- completing the declaration ------------------------------------------------------------
    def __call__(self, function: Function) -> CustomOp:
        """As `reference`, for use as a decorator."""
        self.reference(function)
        return self

    def shape(self, function: Function) -> Function:
        """`function(*dims, **attributes)` gives the extents of the output, or a list of them.

        A tuple of extents per input (None for one that is absent): ints, or symbols that can be
        added, subtracted, multiplied and divided (//, %). A ValueError says what is wrong.
        """
        self.meaning.functions["shape"] = function
        return function

    def reference(self, function: Function) -> Function:
        """`function(*arrays, **attributes)` is the numpy meaning: an array, or a tuple of them.

        Arrays are read-only; an input that is absent is None.
        """
        self.meaning.functions["reference"] = function
        return function

    def compose(self, function: Any) -> Any:
        """The operator as other operators: nothing else is needed then.

        Either `function(b, *values, **attributes)` builds it from primitives with a Builder and
        returns a value or a tuple; or an onnx.FunctionProto, or its text, is its body.
        """
        if self.meaning.code.rows:
            raise OptionError(f"{self.signature.name} has native code: it cannot be composed too")
        self.meaning.functions["compose"] = function
        return function

    def native(
        self,
        symbol: str | Mapping[str, str],
        *,
        dtype: str | None = None,
        library: Path | None = None,
        object: Path | None = None,
        source: Path | None = None,
        flags: Sequence[str] = (),
    ) -> CustomOp:
        """The C function that computes the operator; `prototype` shows how it is called.

        symbol: its name, with `{T}` where it names the element type of variable T, or a table of
        names by the element type of the first variable. dtype: the type that one name is for. May
        be called again for more types. library: a shared library that has it; object: an object
        or archive; source: a C file, or C code of several lines; with flags of the compiler.
        Without any of them it becomes an undefined symbol of the compiled object. Raises
        OptionError.
        """
        if "compose" in self.meaning.functions:
            raise OptionError(f"{self.signature.name} is composed: it cannot have native code too")
        where = binary(self.signature.name, library, object, source, flags)
        self.meaning.code.add(self.signature, symbol, dtype, where)
        first = next(iter(self.signature.types), None)
        if first is not None and first not in self._narrowed:
            self.signature.types[first] = self.meaning.code.kinds()
        return self

    def prototype(self, **types: str) -> str:
        """The C declaration of the function for these element types of the type variables."""
        single = {v: kinds[0] for v, kinds in self.signature.types.items() if len(kinds) == 1}
        bound = single | types
        missing = [v for v in self.signature.types if v not in bound]
        if missing:
            raise OptionError(
                f"{self.signature.name}: say what {missing[0]} is: {missing[0]}='f32'"
            )
        try:
            return prototype(
                self.signature, self.meaning.code.row(self.signature, bound).symbol, bound
            )
        except Misfit as error:
            raise OptionError(f"{self.signature.name}: {error}") from None

    def remove(self) -> None:
        """Takes the declaration back; models in memory that use the operator are of no use then."""
        if OPERATORS.get(self.primitive) is self:
            del OPERATORS[self.primitive]
            self.record.unregister()
            registry.remove(self._onnx)

    def __repr__(self) -> str:
        return f"<cuvil custom operator {self.signature}>"

    # -- using it ------------------------------------------------------------------------------
    def emit(self, b: Builder, *operands: Value | None, **attributes: Any) -> Any:
        """Builds the operator at a builder's place; None stands for an input that is absent.

        One result comes back as a value, several as a tuple. Raises SignatureError.
        """
        kinds = [None if v is None else tensor_type(v) for v in operands]
        pairs = {name: (kind_of(v) or type(v).__name__, v) for name, v in attributes.items()}
        keywords = self.accept("", kinds, pairs, len(self.signature.outputs))
        results = self._build(b, None, "", operands, keywords)
        return results[0] if len(results) == 1 else results

    def accept(
        self,
        where: str,
        inputs: Sequence[TensorType | str | None],
        attributes: Mapping[str, tuple[str, Any]],
        outputs: int,
    ) -> dict[str, Any]:
        """The attributes' values for a use that fits; SignatureError for one that does not."""
        signature = self.signature
        try:
            for i, kind in enumerate(inputs):
                if isinstance(kind, str):
                    raise Misfit(f"input {i} is {kind}, not a tensor")
            if outputs > len(signature.outputs):
                raise Misfit(f"{outputs} outputs, not {len(signature.outputs)}")
            self.meaning.row(signature.bind([k for k in inputs if not isinstance(k, str)]))
            return signature.arguments(attributes)
        except Misfit as error:
            shown = used(inputs, outputs, attributes)
            raise signature.refuse(where, str(error), shown) from None

    def _import(self, cx: Cx, *values: Any, **keywords: Any) -> tuple[Value, ...]:
        """The composition behind the ONNX record."""
        results = self._build(cx.b, cx, cx.where, values, keywords)
        for i, value in enumerate(results):
            declared = cx.declared(i)
            if declared is not None and not agree(tensor_type(value), *declared):
                self.meaning.refuse_result(
                    cx.where, i, tensor_type(value), declared, values, keywords
                )
        return results

    def _build(
        self, b: Builder, cx: Cx | None, where: str, values: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[Value, ...]:
        padded = [*values, *[None] * (len(self.signature.inputs) - len(values))]
        body = self.meaning.functions.get("compose")
        if body is None:
            absent = tuple(i for i, v in enumerate(padded) if v is None)
            present = [v for v in padded if v is not None]
            try:
                found = b.emit(self.primitive, present, **keywords, **{ABSENT: absent})
            except SignatureError as error:
                raise SignatureError(f"{where}: {error}" if where else str(error)) from None
            return found if isinstance(found, tuple) else (found,)
        if callable(body):
            found = body(b, *padded, **keywords)
        elif cx is None:
            raise OptionError(
                f"{self.signature.name} is composed of ONNX nodes: it can be used in ONNX models "
                "only; give .compose a function to use it from Python"
            )
        else:
            found = cx.expand(body, padded, keywords)
        results = tuple(found) if isinstance(found, tuple | list) else (found,)
        self.meaning.check_composed(where, padded, results, keywords)
        return results

    def _lower(self, cx: KernelCx) -> None:
        self.meaning.lower(cx, self.primitive, self.record.attrs)
