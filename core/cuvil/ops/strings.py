"""Strings: elements of a constant, keys in a table, patterns, concatenation, case, pieces.

All but `string_concat` have a constant table of bytes as their last operand (`string_tables`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.elementwise import POINTWISE, broadcast_dims
from cuvil.ops.lowering import ElementCx, broadcast_index
from cuvil.ops.string_meaning import CALLS, call

Types = Sequence[TensorType]


def _check(what: str, t: Types, texts: int, table: bool = True) -> None:
    """ValueError unless the operands are strings, then a table."""
    good = len(t) == texts + table and all(x.dtype.is_string for x in t[:texts])
    if not good or (table and (t[-1].rank != 1 or t[-1].dtype.name != "u8")):
        raise ValueError(f"{what} does not take {shapes(t)}")


def _strings_type(t: Types, a: Attrs) -> list[TensorType]:
    _check("strings", t, 0)
    return [TensorType.of(a.shape, "string")]


def _strings_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    at = cx.b.flatten(index, cx.result_type.dims)
    return cx.b.call("at", [at], "string", cx.buffer(0))


STRINGS = Primitive(
    name="strings",  # a constant of strings: those of the table, in a shape
    infer=_strings_type,
    evaluate=lambda x, a: [call("at", [np.arange(math.prod(a.shape)).reshape(a.shape)], x[0])],
    attrs={"shape": Attr("ints")},
    element=_strings_element,
).register()


def _of_one(name: str, result: str) -> Primitive:
    """A function of each string by itself and of a table."""

    def infer(t: Types, _: Attrs) -> list[TensorType]:
        _check(f"string_{name}", t, 1)
        return [t[0].with_dtype(result)]

    def element(cx: ElementCx, index: Sequence[Index]) -> Value:
        run = cx.run() if CALLS[name].makes else None
        return cx.b.call(name, [cx.operand(0, index)], result, cx.buffer(1), run)

    return Primitive(
        name=f"string_{name}",
        infer=infer,
        evaluate=lambda x, _: [call(name, [x[0]], x[1])],
        element=element,
    ).register()


FIND = _of_one("find", "i64")  # the position in a sorted list without repeats, or its length
MATCH = _of_one("match", "bool")  # whether the pattern matches the whole string
CASE = _of_one("case", "string")  # every character by a case mapping


def _concat_type(t: Types, _: Attrs) -> list[TensorType]:
    _check("string_concat", t, 2, table=False)
    return [TensorType.of(broadcast_dims(t[0].dims, t[1].dims), "string")]


def _concat_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    target = cx.result_type.dims
    values = [
        cx.operand(i, broadcast_index(index, t.dims, target))
        for i, t in enumerate(cx.operand_types)
    ]
    return cx.b.call("concat", values, "string", None, cx.run())


CONCAT = Primitive(
    name="string_concat",  # one behind the other; operands broadcast
    infer=_concat_type,
    evaluate=lambda x, _: [call("concat", x)],
    element=_concat_element,
    tags=POINTWISE,
).register()


def _count_type(t: Types, _: Attrs) -> list[TensorType]:
    _check("string_count", t, 1)
    return [t[0].with_dtype("i64")]


COUNT = Primitive(
    name="string_count",  # how many pieces `string_pieces` has of a string
    infer=_count_type,
    evaluate=lambda x, a: [call("count", [x[0], a.most], x[1])],
    attrs={"most": Attr("int", -1)},
    element=lambda cx, index: cx.b.call(
        "count", [cx.operand(0, index), cx.attrs.most], "i64", cx.buffer(1)
    ),
).register()


def _pieces_type(t: Types, a: Attrs) -> list[TensorType]:
    _check("string_pieces", t, 1)
    return [t[0].with_dims([*t[0].dims, *a.dims])]


def _pieces(x: Sequence[Any], a: Attrs) -> list[Any]:
    return [call("piece", [x[0][..., None], np.arange(a.dims[0]), a.most], x[1])]


PIECES = Primitive(
    name="string_pieces",  # [..., dims]: parts between delimiters after `most` splits, padded: ""
    infer=_pieces_type,
    evaluate=_pieces,
    attrs={"dims": Attr("dims"), "most": Attr("int", -1)},
    element=lambda cx, index: cx.b.call(
        "piece", [cx.operand(0, index[:-1]), index[-1], cx.attrs.most], "string", cx.buffer(1)
    ),
).register()


def _tokens_type(t: Types, _: Attrs) -> list[TensorType]:
    _check("string_tokens", t, 1)
    return [t[0].with_dtype("i64")]


TOKENS = Primitive(
    name="string_tokens",  # how many matches of an automaton `string_token` has in a string
    infer=_tokens_type,
    evaluate=lambda x, a: [call("tokens", [x[0], a.least], x[1])],
    attrs={"least": Attr("int", 1)},
    element=lambda cx, index: cx.b.call(
        "tokens", [cx.operand(0, index), cx.attrs.least], "i64", cx.buffer(1)
    ),
).register()


def _token_type(t: Types, a: Attrs) -> list[TensorType]:
    _check("string_token", t, 1)
    return [t[0].with_dims([*t[0].dims, *a.dims])]


def _token(x: Sequence[Any], a: Attrs) -> list[Any]:
    return [call("token", [x[0][..., None], np.arange(a.dims[0]), a.least], x[1])]


TOKEN = Primitive(
    name="string_token",  # [..., dims]: the matches of at least `least` characters, padded: ""
    infer=_token_type,
    evaluate=_token,
    attrs={"dims": Attr("dims"), "least": Attr("int", 1)},
    element=lambda cx, index: cx.b.call(
        "token", [cx.operand(0, index[:-1]), index[-1], cx.attrs.least], "string", cx.buffer(1)
    ),
).register()
