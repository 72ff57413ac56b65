"""com.microsoft: tokens of strings, as skl2onnx's text vectorizers ask for."""

from __future__ import annotations

import re

import numpy as np

from cuvil.ir.string_tables import Automaton, automaton_table
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.microsoft import MS
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.onnx.strings import needs_strings, texts
from cuvil.ops.regex import PatternError, UnsupportedPattern, compile_pattern
from cuvil.ops.regex_syntax import Cat, Node, Repeat, Set, parse


@onnx_op("Tokenizer", domain=MS)
def tokenizer(
    cx: Cx,
    x: Value,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: tuple[str, ...] = (),
    stopwords: tuple[str, ...] = (),
    tokenexp: str = "",
) -> Value:
    """[..., tokens]: what matches a pattern in every string, padded to the longest list.

    A pattern is a sequence of classes of characters of which only the last may repeat freely, for
    then the longest match is the one that RE2 finds.
    """
    needs_strings(cx, x)
    if not tokenexp or separators or stopwords or mark:
        cx.fail("separators, stop words and marks are not supported, tokenexp is")
    b, kind = cx.b, cx.type(x)
    table = b.table(automaton_table(_automaton(cx, tokenexp)))
    counts = b.string_tokens(x, table, least=mincharnum)
    flat = b.reshape(counts, dims=(kind.size,))
    some = b.concat(flat, b.const(np.zeros(1, np.int64)), axis=0)
    most = cx.bind(b.reduce(some, kind="max", axes=(0,), keepdims=False), "tokens")
    found = b.string_token(x, table, dims=(most,), least=mincharnum)
    count = b.reshape(counts, dims=(*kind.dims, 1))
    place = b.iota(dims=(*[1] * kind.rank, most), axis=kind.rank)
    return b.select(b.lt(place, count), found, b.const(texts([pad_value])))


def _automaton(cx: Cx, pattern: str) -> Automaton:
    try:
        node = parse(pattern)
        if re.search(r"(?<!\\)[*+?}]\?", pattern) or not _one_way(node):
            raise UnsupportedPattern("more than one part repeats, or alternatives")
        return compile_pattern(pattern)
    except PatternError as error:
        cx.bad(f"tokenexp {pattern!r}: {error}")
    except UnsupportedPattern as error:
        cx.fail(f"tokenexp {pattern!r}: {error}")


def _one_way(node: Node) -> bool:
    """Whether only the last part of a pattern may match more or less."""
    parts = node.parts if isinstance(node, Cat) else (node,)
    fixed = all(_is_set(part) and _is_fixed(part) for part in parts[:-1])
    return fixed and bool(parts) and _is_set(parts[-1])


def _is_set(node: Node) -> bool:
    return isinstance(node, Set) or (isinstance(node, Repeat) and isinstance(node.part, Set))


def _is_fixed(node: Node) -> bool:
    return isinstance(node, Set) or (isinstance(node, Repeat) and node.least == node.most)
