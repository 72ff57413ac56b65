"""The shorter e**x of attention's weights, which are parts of a sum of at least 1."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import ir

from cuvil.codegen.attention.exponential import exp_below
from cuvil.codegen.llvm_util import F32, I64, PTR, VOID, for_range, i64, load, store
from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request
from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.ir.dtypes import dtype
from tools.numerics.builds import builds

ANY = Request("exp", "f32")  # of its signature


@pytest.fixture(scope="module", params=builds(), ids=lambda build: build.name)
def function(request):
    facts = request.param.facts
    module = ir.Module("below")
    made = ir.Function(module, ir.FunctionType(VOID, [PTR] * 4 + [I64]), ANY.symbol)
    b = ir.IRBuilder(made.append_basic_block("entry"))
    with for_range(b, i64(0), made.args[4], i64(1)) as i:
        value = exp_below(MathBuilder(b, dtype("f32"), 1, facts), load(b, made.args[1], i, F32))
        store(b, value, made.args[0], i)
    b.ret_void()
    code = ArrayFunctions.from_text(str(module), [ANY.symbol], facts.cpu, facts.features)
    return lambda x: code(ANY, x)


def test_it_errs_by_little_more_than_an_epsilon(function):
    bits = np.arange(0x80000000, 0xFF800000, 4099, dtype=np.uint32)  # from -0 to the lowest
    x = bits.view(np.float32)
    error = np.abs(function(x) - np.exp(x.astype(np.float64)))
    assert error.max() <= 1.25 * 2.0**-23


def test_special_values(function):
    value = function(np.float32([0, -0.0, -1e-40, -88, -np.inf, np.nan]))
    np.testing.assert_array_equal(value, np.float32([1, 1, 1, 0, 0, np.nan]))
