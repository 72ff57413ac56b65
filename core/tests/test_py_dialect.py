"""The `py` dialect: functions as text that parses back, and LLVM IR that needs no backend."""

from __future__ import annotations

import pytest

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.python.module import ENTRY, emit_module
from cuvil.ir.py_types import FLOAT, INT, STR, Array, Dict, List, Scalar, Tuple, Type, parse
from cuvil.ir.text import parse_ir, print_ir
from cuvil.jit_compiler.frontend.source import Unsupported, read_source
from cuvil.jit_compiler.translation import translate

KINDS = [
    INT, List(Tuple((FLOAT, STR))), Dict(STR, List(INT)), Array("f", 3, False), Scalar("l"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_types_have_texts(kind: Type):
    assert parse(kind.code) == kind


@pytest.mark.parametrize("text", ["", "?", "[", "(i", "ax1Cw", "ii"])
def test_texts_that_name_no_type(text: str):
    with pytest.raises(ValueError, match=r"type"):
        parse(text)


def longest(words, least):
    found = ""
    for word in words:
        if len(word) > max(len(found), least):
            found = word.strip()
    return found, [w.lower() for w in words]


def test_a_function_as_text():
    made = translate(read_source(longest), (List(STR), INT))
    (function,) = made.functions
    text = print_ir(function)
    assert '"py.func"' in text and '"py.while"' in text and '!py.value<"[s">' in text
    assert print_ir(parse_ir(text)).count('"py.apply"') == text.count('"py.apply"')
    assert made.result == Tuple((STR, List(STR))) and made.pure


def test_a_function_as_llvm():
    made = translate(read_source(longest), (List(STR), INT))
    unit = emit_module(made.functions, TargetFacts("generic"), 2)
    assert f'define void @"{ENTRY}"' in unit.ir and "py_str_strip" in unit.ir


def test_a_refusal_names_the_line():
    with pytest.raises(Unsupported, match=r"test_py_dialect.py:\d+: .*str \+ int|'add' of str"):
        translate(read_source(wrong), (STR, INT))


def wrong(a, b):
    return a + b
