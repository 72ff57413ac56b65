"""Shape arithmetic as compiled code: what `evaluate` gives, and no trap."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import ir

from cuvil.codegen.dims_llvm import FAR, compute
from cuvil.codegen.llvm_util import I64, PTR
from cuvil.codegen.scalars.array_functions import compile_module
from cuvil.codegen.slots import SlotTable
from cuvil.ir.dims import Dim, dim_max, dim_min, evaluate, floor_scaled, symbol

A, B, C = (symbol(name) for name in "abc")
LOWEST, HIGHEST = -(2**63), 2**63 - 1


@cache
def compiled(dim: Dim) -> Callable[..., int]:
    """A function of a, b and c."""
    module, slots = ir.Module("dims"), SlotTable(("a", "b", "c"))
    function = ir.Function(module, ir.FunctionType(I64, [PTR]), "value")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.ret(compute(b, function.args[0], slots, dim))
    parsed, machine = compile_module(module)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    native = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("value"))

    def call(a: int, b: int, c: int = 0) -> int:
        values = (ctypes.c_int64 * 3)(a, b, c)
        return int(native(ctypes.addressof(values)))

    call.engine = engine  # type: ignore[attr-defined]  # lives as long as the code is called
    return call


NUMBERS = st.integers(-9, 9)
EXPRESSIONS = [
    *(A // B, A % B, (A * B + C) // 4, (A - B) % 3, dim_min(A, B) - dim_max(B, C) * 2),
    *((A + 7) // (B - C), (A - 7) % (B - C), A // (B // C)),
]


@given(a=NUMBERS, b=NUMBERS, c=NUMBERS, which=st.sampled_from(range(len(EXPRESSIONS))))
def test_compiled_arithmetic_is_that_of_python(a: int, b: int, c: int, which: int) -> None:
    env = {"a": a, "b": b, "c": c}
    assert compiled(EXPRESSIONS[which])(**env) == evaluate(EXPRESSIONS[which], env)


@pytest.mark.parametrize("a", [0, 1, 7, -7, LOWEST, HIGHEST])
def test_a_divisor_of_zero_counts_as_one(a: int) -> None:
    assert compiled(A // B)(a, 0) == evaluate(A // B, {"a": a, "b": 0}) == a
    assert compiled(A % B)(a, 0) == evaluate(A % B, {"a": a, "b": 0}) == 0


def test_the_lowest_number_over_minus_one_does_not_trap() -> None:
    assert compiled(A // B)(LOWEST, -1) == HIGHEST
    assert compiled(A % B)(LOWEST, -1) == 0
    assert compiled(A // B)(5, -1) == -5


def test_what_overflows_stays_far_out() -> None:
    far = 2**40
    assert compiled(A * B)(far, far) == FAR
    assert compiled(A * B * C)(far, far, -1) == -FAR
    assert compiled(A * B + A * C + B * C)(far, far, far) >= FAR


@pytest.mark.parametrize("scale", [2.6, 1 / 3, 0.1, 1.1, 0.9999999, 1.0000001, 7.0, 1e-7, 12345.68])
def test_scaled_extents_are_floors_of_float32_products(scale: float) -> None:
    random = np.random.default_rng(1)
    some = [*range(500), *random.integers(0, 1 << 39, 500), *random.integers(0, 1 << 24, 500)]
    for n in map(int, some):
        wanted = int(np.floor(np.float32(n) * np.float32(scale)))
        assert compiled(floor_scaled(A, scale))(n, 0) == wanted, n
