"""pow: special values, and the constant exponents that become multiplications or a root."""

from __future__ import annotations

import math

import numpy as np
import pytest
from llvmlite import ir

from cuvil.codegen.llvm_util import F32, I64, PTR, VOID, for_range, i64, load, store
from cuvil.codegen.scalars import emit
from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request
from cuvil.ops.scalars import evaluate
from tools.numerics.builds import Compiled, builds
from tools.numerics.samples import powers, ulp_errors
from tools.numerics.sweep import patterns

BOUNDS = {0.0: 0, 0.5: 0.5, 1.0: 0, 2.0: 0.5, 3.0: 1.5, 4.0: 2.5, -1.0: 1.0, 2.5: 1.0}
ANY = Request("exp", "f32")  # of the signature of a function with one operand
INF, NAN = math.inf, math.nan


def with_exponent(exponent, facts):
    """x ** exponent over arrays, the exponent known to the code generator."""
    module = ir.Module("power")
    made = ir.Function(module, ir.FunctionType(VOID, [PTR] * 4 + [I64]), ANY.symbol)
    b = ir.IRBuilder(made.append_basic_block("entry"))
    with for_range(b, i64(0), made.args[4], i64(1)) as i:
        operands = [load(b, made.args[1], i, F32), ir.Constant(F32, exponent)]
        store(b, emit("pow", b, operands, "f32", facts=facts), made.args[0], i)
    b.ret_void()
    code = ArrayFunctions.from_text(str(module), [ANY.symbol], facts.cpu, facts.features)
    return lambda x: code(ANY, x)


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.name)
@pytest.mark.parametrize("exponent", BOUNDS)
def test_constant_exponents(build, exponent):
    odd = np.float32([0.0, -0.0, 1, -1, INF, -INF, NAN, 2.0**-149, -(2.0**-60), 3e38])
    x = np.concatenate([odd, *patterns(65521)])
    value = with_exponent(exponent, build.facts)(x)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), np.full(x.shape, exponent))
        folded = evaluate("pow", x, np.float32(exponent))
    np.testing.assert_array_equal(folded, exact.astype(np.float32))
    assert ulp_errors(value, exact).max() <= BOUNDS[exponent]
    zeros = (value == 0) & (exact == 0)
    assert (np.signbit(value[zeros]) == np.signbit(exact[zeros])).all()


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.name)
def test_special_operands(build):
    some = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, INF, -INF, NAN, 2.0**24 + 2]
    x, y = np.float32([(a, b) for a in some for b in some]).T.copy()
    power = Compiled("pow", "f32", build)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    for value in (power.body(x, y), power.tail(x, y)):
        np.testing.assert_array_equal(value, exact)
        numbers = ~np.isnan(exact)
        assert (np.signbit(value) == np.signbit(exact))[numbers].all()


def test_random_operands():
    samples = list(powers(builds()[-1:]))
    assert [str(s) for s in samples if s.faults] == []
    assert [s.ulps <= (1 if s.dtype == "f32" else 8) for s in samples] == [True, True]
