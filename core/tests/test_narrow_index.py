"""`cuvil.codegen.narrow_index`: what is only an index becomes i32, what may be data stays."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
from llvmlite import ir

from cuvil.codegen.dims_llvm import load_slot
from cuvil.codegen.llvm_util import (
    F32,
    I64,
    KERNEL_TYPE,
    PTR,
    VOID,
    declare,
    for_range,
    i64,
    load,
    store,
)
from cuvil.codegen.narrow_index import narrow_indices


def kernel(module: ir.Module, name: str = "kernel") -> tuple[ir.IRBuilder, ir.Function]:
    function = ir.Function(module, KERNEL_TYPE, name)
    return ir.IRBuilder(function.append_basic_block("entry")), function


def narrowed(module: ir.Module) -> str:
    narrow_indices(module)
    text = str(module)
    llvm.parse_assembly(text).verify()
    return text


def test_a_loop_over_floats_counts_in_32_bits() -> None:
    module = ir.Module()
    b, function = kernel(module)
    buffers, dims, begin, end, _ = function.args
    with for_range(b, begin, b.add(end, load_slot(b, dims, 2))) as i:
        store(b, load(b, buffers, b.mul(i, i64(3)), F32), buffers, i)
    b.ret(ir.Constant(ir.IntType(32), 0))
    text = narrowed(module)
    assert "phi  i32" in text and "mul i32" in text and "icmp slt i32" in text
    assert text.count("trunc i64") == 2  # of the tasks
    assert not re.search(r"(phi|add|mul|icmp \w+)\b.* i64", text)


def test_what_is_stored_stays_wide() -> None:
    module = ir.Module()
    b, function = kernel(module)
    buffers, _, begin, end, _ = function.args
    with for_range(b, begin, end) as i:
        store(b, i, buffers, i)
    b.ret(ir.Constant(ir.IntType(32), 0))
    assert "phi  i64" in narrowed(module)


def test_elements_and_what_meets_them_stay_wide() -> None:
    module = ir.Module()
    b, function = kernel(module)
    buffers, _, begin, end, _ = function.args
    with for_range(b, begin, end) as i:
        found = load(b, buffers, i, I64)
        store(b, load(b, buffers, b.add(found, begin), F32), buffers, i)
    b.ret(ir.Constant(ir.IntType(32), 0))
    text = narrowed(module)
    assert "load i64" in text and re.search(r"add i64 %\S+, %\S+", text)


def test_numbers_beyond_32_bits_stay_wide() -> None:
    module = ir.Module()
    b, function = kernel(module)
    buffers, _, begin, _, _ = function.args
    place = b.urem(begin, i64(1 << 40))
    store(b, ir.Constant(F32, 1), buffers, place)
    b.ret(ir.Constant(ir.IntType(32), 0))
    assert "urem i64" in narrowed(module)


def test_functions_of_the_module_agree_with_their_callers() -> None:
    module = ir.Module()
    inner = ir.Function(module, ir.FunctionType(VOID, [PTR, I64, I64]), "inner")
    inner.linkage = "internal"
    b = ir.IRBuilder(inner.append_basic_block())
    store(b, ir.Constant(F32, 1), inner.args[0], b.add(inner.args[1], inner.args[2]))
    b.ret_void()
    for name in "ab":
        b, function = kernel(module, name)
        b.call(inner, [function.args[0], function.args[2], i64(7)])
        b.ret(ir.Constant(ir.IntType(32), 0))
    text = narrowed(module)
    assert re.search(r"define internal void @\"inner\"\(ptr %\S+, i32 %\S+, i32 %\S+\)", text)
    assert text.count("i32 7)") == 2


def test_others_are_called_as_they_want() -> None:
    module = ir.Module()
    b, function = kernel(module)
    buffers, _, begin, end, _ = function.args
    outside = declare(module, "outside", VOID, [I64])
    with for_range(b, begin, end) as i:
        b.call(outside, [i])
        store(b, ir.Constant(F32, 1), buffers, i)
    b.ret(ir.Constant(ir.IntType(32), 0))
    text = narrowed(module)
    assert "phi  i32" in text and re.search(r"sext i32 %\S+ to i64", text)
