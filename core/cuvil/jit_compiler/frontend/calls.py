"""Calls: builtins and the math module here; methods, numpy and other functions in their modules."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from cuvil.engine.engine import Engine
from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    NUMBER,
    STR,
    Array,
    Dict,
    List,
    Scalar,
    Set,
    Tensor,
    Tuple,
    Union,
    is_number,
)
from cuvil.jit_compiler.frontend import arithmetic, elements
from cuvil.jit_compiler.frontend.expressions import (
    as_value,
    call_python,
    condition,
    expression,
    handler,
    value_of,
)
from cuvil.jit_compiler.frontend.iteration import (
    cursor_of,
)
from cuvil.jit_compiler.frontend.methods import call_method
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Range, Static, Val, Walk

Builtin = Callable[[Translator, ast.Call], Expression]
BUILTINS: dict[Any, Builtin] = {}
_NUMPY: dict[Any, Builtin] = {}
FINDERS: list[Callable[[Any], Builtin | None]] = []
"""What knows functions of libraries that may not be there."""


def builtin(*names: str) -> Callable[[Builtin], Builtin]:
    """Registers what translates calls of builtins."""

    def register(function: Builtin) -> Builtin:
        BUILTINS.update({getattr(builtins, name): function for name in names})
        return function

    return register


def register_numpy(table: dict[Any, Builtin]) -> None:
    """Adds numpy's functions."""
    _NUMPY.update(table)


@handler(ast.Call)
def _call(t: Translator, node: ast.Call) -> Expression:
    if any(isinstance(a, ast.Starred) for a in node.args) or any(
        k.arg is None for k in node.keywords
    ):
        raise t.refusal("* or ** in a call")
    if isinstance(node.func, ast.Attribute):
        base = expression(t, node.func.value)
        if not isinstance(base, Static):
            return call_method(t, base, node)
    callee = expression(t, node.func)
    if not isinstance(callee, Static):
        raise t.refusal(f"a call of {ast.unparse(node.func)}")
    try:
        found = BUILTINS.get(callee.value) or _NUMPY.get(callee.value)
    except TypeError:
        found = None
    for find in FINDERS:
        found = found or find(callee.value)
    if found is not None:
        return found(t, node)
    return call_function(t, callee, node)


def positional(t: Translator, node: ast.Call, least: int, most: int) -> list[Val]:
    """The values of arguments that are all by position."""
    if node.keywords or not least <= len(node.args) <= most:
        raise t.refusal(f"this call of {ast.unparse(node.func)}")
    return [value_of(t, a) for a in node.args]


def call_function(t: Translator, callee: Static, node: ast.Call) -> Val:
    """A jitted or plain Python function, compiled with this one, or a compiled engine."""
    if hasattr(callee.value, "get_outputs"):
        return _call_engine(t, callee, node)
    python = getattr(callee.value, "__wrapped__", callee.value)
    if not inspect.isfunction(python):
        raise t.refusal(f"a call of '{callee.path}'")
    try:
        bound = inspect.signature(python).bind(
            *node.args, **{str(k.arg): k.value for k in node.keywords}
        )
    except TypeError as error:
        raise t.refusal(f"{callee.path}: {error}") from None
    bound.apply_defaults()
    args = [
        value_of(t, a) if isinstance(a, ast.expr) else t.literal(a)
        for a in bound.arguments.values()
    ]
    kinds = tuple(t.resolve(a.kind) for a in args)
    name, result, outside = t.program.callee(callee.value, kinds, t)
    more = [t.program_value(key[1:], t.program.more[key]) for key in outside]
    ssa = t.builder.call(name, [a.ssa for a in (*args, *filter(None, more))], result)
    if isinstance(result, Union):
        raise t.refusal(f"'{callee.path}' returns {result}")
    return Val(result, ssa)


def _call_engine(t: Translator, callee: Static, node: ast.Call) -> Val:
    """An engine's one output: an array, or a tensor for tensors, that Python hands over."""
    if not isinstance(callee.value, Engine):
        raise t.refusal("a compiled module of torch's: call its engine")
    outputs = callee.value.get_outputs()
    if len(outputs) != 1 or node.keywords:
        raise t.refusal("an engine with several outputs, or called by names")
    name, dims = outputs[0].dtype, outputs[0].dims
    try:
        kind = Array(np.dtype(name).char, len(dims), fresh=True)
    except TypeError:
        raise t.refusal(f"an engine whose output is of {name}") from None
    if kind.dtype not in "?bBhHiIlLfd" or not dims:
        raise t.refusal(f"an engine whose output is of {name} and rank {len(dims)}")
    args = [value_of(t, a) for a in node.args]
    by_tensors = any(isinstance(t.resolve(a.kind), Tensor) for a in args)
    return call_python(t, callee.value, None, args, Tensor(kind) if by_tensors else kind)


# -- iterators -------------------------------------------------------------------------------------
@builtin("range")
def _range(t: Translator, node: ast.Call) -> Expression:
    args = [elements.as_int(t, a) for a in positional(t, node, 1, 3)]
    zero, one = t.literal(0), t.literal(1)
    if len(args) == 1:
        return Range(zero, args[0], one)
    return Range(args[0], args[1], args[2] if len(args) == 3 else one)


@builtin("enumerate", "zip", "reversed")
def _walk(t: Translator, node: ast.Call) -> Expression:
    name = ast.unparse(node.func)
    options = {k.arg: value_of(t, k.value) for k in node.keywords}
    start = options.pop("start", None)
    if name == "zip" and "strict" in options and options["strict"].literal is False:
        del options["strict"]
    items = [expression(t, a) for a in node.args]
    if name == "enumerate" and len(items) == 2:
        start = as_value(t, items.pop())
    if options or not items:
        raise t.refusal(f"this call of {name}")
    return Walk(name, tuple(items), start)


@builtin("len")
def _len(t: Translator, node: ast.Call) -> Expression:
    (argument,) = node.args
    found = expression(t, argument)
    if isinstance(found, Range):
        return cursor_of(t, found).length()
    return length(t, as_value(t, found))


def length(t: Translator, value: Val) -> Val:
    """len(x)"""
    kind = t.resolve(value.kind)
    if isinstance(kind, Tuple):
        return t.literal(len(kind.items))
    if isinstance(kind, Array | Tensor):
        return t.apply("array.extent", [value], INT, None, [0])
    names = {List: "list.len", Dict: "dict.len", Set: "set.len"}
    name = "str.len" if kind == STR else names.get(type(kind))
    if name is None:
        raise t.refusal(f"len of {kind}")
    return t.apply(name, [value], INT)


# -- numbers ---------------------------------------------------------------------------------------
@builtin("abs")
def _abs(t: Translator, node: ast.Call) -> Expression:
    (argument,) = node.args
    found = expression(t, argument)
    if elements.is_array(t, found):
        return elements.unary(t, "abs", found)
    return arithmetic.absolute(t, as_value(t, found))


@builtin("float")
def _float(t: Translator, node: ast.Call) -> Expression:
    args = positional(t, node, 0, 1)
    if not args:
        return t.literal(0.0)
    if args[0].is_literal and isinstance(args[0].literal, str):
        try:
            return t.literal(float(args[0].literal))
        except ValueError:
            raise t.refusal("float of this text") from None
    if t.resolve(args[0].kind) == STR:
        return call_python(t, float, None, args, FLOAT)
    return t.to_float(args[0])


@builtin("int")
def _int(t: Translator, node: ast.Call) -> Expression:
    args = positional(t, node, 0, 2)
    if not args:
        return t.literal(0)
    kind = t.resolve(args[0].kind)
    if kind == STR:
        return call_python(t, int, None, args, INT)
    if kind in (FLOAT, NUMBER) or (isinstance(kind, Scalar) and kind.dtype in "fd"):
        site = t.site("OverflowError", "a float that 64 bits do not hold as an int")
        return t.apply("int.of_float", [t.to_float(args[0])], INT, site)
    return elements.as_int(t, args[0])


@builtin("bool")
def _bool(t: Translator, node: ast.Call) -> Expression:
    return condition(t, node.args[0]) if node.args else t.literal(False)


@builtin("str")
def _str(t: Translator, node: ast.Call) -> Expression:
    args = positional(t, node, 0, 1)
    if not args:
        return t.literal("")
    kind = t.resolve(args[0].kind)
    if kind == STR:
        return args[0]
    if kind == INT:
        return t.apply("str.of_int", args, STR)
    if not is_number(kind):
        raise t.refusal(f"str of {kind}")
    return call_python(t, str, None, args, STR)


@builtin("round")
def _round(t: Translator, node: ast.Call) -> Expression:
    args = positional(t, node, 1, 2)
    kind = t.resolve(args[0].kind)
    if len(args) == 2:
        if kind != FLOAT:
            raise t.refusal(f"round of {kind} to digits")
        return call_python(t, round, None, args, FLOAT)
    if kind in (INT, BOOL):
        return t.convert(args[0], INT)
    if kind != FLOAT:
        raise t.refusal(f"round of {kind}")
    near = t.apply("float.rint", args, FLOAT)
    return t.apply("int.of_float", [near], INT, t.site("OverflowError", "round of inf or nan"))


@builtin("divmod")
def _divmod(t: Translator, node: ast.Call) -> Expression:
    a, b = positional(t, node, 2, 2)
    return t.tuple_of([arithmetic.numbers(t, fn, a, b) for fn in ("floordiv", "mod")])


@builtin("pow")
def _pow(t: Translator, node: ast.Call) -> Expression:
    a, b = positional(t, node, 2, 2)
    return arithmetic.numbers(t, "pow", a, b)


@builtin("ord")
def _ord(t: Translator, node: ast.Call) -> Expression:
    site = t.site("TypeError", "ord() expected a character")
    return t.apply("str.ord", positional(t, node, 1, 1), INT, site)


@builtin("chr")
def _chr(t: Translator, node: ast.Call) -> Expression:
    site = t.site("ValueError", "chr() arg not in range(0x110000)")
    return t.apply("str.chr", positional(t, node, 1, 1), STR, site)
