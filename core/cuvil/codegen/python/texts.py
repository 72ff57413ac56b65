"""Strings: an address and a length, whose functions are the runtime's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from cuvil.codegen.llvm_util import I1, I64, PTR, i64
from cuvil.codegen.python.emit import Applied, Emit, function
from cuvil.codegen.python.numbers import SIGNS, wrapped
from cuvil.codegen.python.values import STR_TYPE, llvm_type, load_value, slots, store_value, struct

WIDE = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


def constant(e: Emit, text: str) -> ir.Value:
    """A literal, as Python's own kinds of strings have it."""
    most = max(map(ord, text), default=0)
    kind = 0 if most < 128 else 1 if most < 256 else 2 if most < 65536 else 4
    data = text.encode(WIDE.get(kind, "ascii"), "surrogatepass")
    return struct(e.b, [e.text(data or b"\0"), i64(len(text) << 3 | kind)])


def flat(e: Emit, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Operands of a call: a string is two."""
    found: list[ir.Value] = []
    for value in values:
        if value.type == STR_TYPE:
            found += [e.b.extract_value(value, i) for i in (0, 1)]
        else:
            found.append(value)
    return found


def length(e: Emit, text: ir.Value) -> ir.Value:
    """The number of characters."""
    return e.b.lshr(e.b.extract_value(text, 1), i64(3))


@function("str.len")
def _len(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return length(e, args[0])


@function("str.eq", "str.ne")
def _equal(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    found = e.test("py_str_equal", flat(e, args))
    return found if op.fn == "str.eq" else e.b.not_(found)


@function("str.lt", "str.le", "str.gt", "str.ge")
def _order(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    order = e.call("py_str_compare", I64, flat(e, args))
    return e.b.icmp_signed(SIGNS[op.fn[4:]], order, i64(0))


@function("str.strip", "str.lower", "str.upper", "str.concat", "str.repeat", "str.join",
          "str.slice", "str.strip_of", "str.of_int")  # fmt: skip
def _made(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    params = [i64(p) for p in op.params]
    return e.support(f"py_str_{op.fn[4:]}", STR_TYPE, [*flat(e, args), *params])


@function("str.chr")
def _chr(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.support("py_str_chr", STR_TYPE, [args[0], i64(op.site)])


@function("str.ord")
def _ord(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.fail_if(e.b.icmp_signed("!=", length(e, args[0]), i64(1)), op.site)
    return e.call("py_str_ord", I64, flat(e, args))


@function("str.split", "str.split_by")
def _split(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    if op.fn == "str.split_by":
        e.fail_if(e.b.icmp_signed("==", length(e, args[1]), i64(0)), op.site)
    return e.support(f"py_{op.fn.replace('.', '_')}", PTR, flat(e, args))


@function("str.starts", "str.ends")
def _test(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.test(f"py_str_{op.fn[4:]}", flat(e, args))


@function("str.find", "str.count")
def _search(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    more = [i64(0)] if op.fn == "str.find" else []
    return e.call(f"py_str_{op.fn[4:]}", I64, [*flat(e, args), *more])


@function("str.is")
def _is(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    found = e.support("py_str_is", ir.IntType(8), [*flat(e, args), i64(ord(op.params[0]))])
    return e.b.trunc(found, I1)


@function("str.index")
def _index(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    at = wrapped(e, args[1], length(e, args[0]), op.site)
    return e.support("py_str_slice", STR_TYPE, [*flat(e, args[:1]), at, i64(1), i64(1)])


@function("python.call")
def _python(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """Calls into Python; params: the number of the call in the function's table."""
    place = e.stack(sum(map(slots, op.kinds)))
    at = 0
    for value, kind in zip(args, op.kinds, strict=True):
        store_value(e.b, value, place, kind, at)
        at += slots(kind)
    result = e.stack(slots(op.results[0]))
    e.support("py_call", ir.VoidType(), [i64(op.params[0]), place, result])
    return load_value(e.b, result, op.results[0])


@function("none")
def _none(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return ir.Constant(llvm_type(op.results[0]), 0)


@function("str.truth")
def _truth(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.icmp_signed("!=", length(e, args[0]), i64(0))
