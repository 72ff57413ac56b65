"""Products of vectors and matrices: small ones in loops, the rest by numpy."""

from __future__ import annotations

import numpy as np

from cuvil.ir.py_build import PyBuilder, value_block
from cuvil.ir.py_types import BOOL, INT, Array, Scalar, numeric_join
from cuvil.jit_compiler.frontend import elements
from cuvil.jit_compiler.frontend.expressions import MATRIX_PRODUCT, call_python
from cuvil.jit_compiler.frontend.reductions import whole
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Val

SMALL = 16 * 16 * 16  # multiplications up to which loops beat a call of numpy's


def product(t: Translator, left: Val, right: Val) -> Val:
    """left @ right of ranks 1 and 2."""
    kinds = [t.resolve(v.kind) for v in (left, right)]
    a, b = kinds
    if not isinstance(a, Array) or not isinstance(b, Array) or max(a.rank, b.rank) > 2:
        raise t.refusal(f"a product of {a} and {b}")
    common = numeric_join((a.element, b.element))
    if not isinstance(common, Scalar) or np.dtype(common.dtype).kind == "b":
        raise t.refusal(f"a product of {a} and {b}")
    if a.rank == b.rank == 1:
        return whole(t, "sum", elements.combine(t, "mul", left, right))
    rank = a.rank + b.rank - 2
    made = Array(common.dtype, rank, False, True, True)
    if a.rank == b.rank == 2 and a.element == b.element:
        return _matrices(t, left, right, made)
    return call_python(t, np.matmul, None, [left, right], made)


def _matrices(t: Translator, left: Val, right: Val, kind: Array) -> Val:
    rows, inner = (t.apply("array.extent", [left], INT, None, [i]) for i in (0, 1))
    columns = t.apply("array.extent", [right], INT, None, [1])
    site = t.site("ValueError", "matmul: the inner dimensions do not match")
    work = t.apply("int.mul", [t.apply("int.mul", [rows, inner], INT, site), columns], INT, site)
    small = t.apply("int.le", [work, t.literal(SMALL)], BOOL)
    outer, ends = t.builder, []
    for is_small in (True, False):
        t.builder = PyBuilder(value_block())
        if is_small:
            found = t.apply("array.matmul", [left, right], kind, site)
        else:
            found = call_python(t, np.matmul, None, [left, right], kind)
        t.builder.yield_([found.ssa])
        ends.append(t.builder.block)
    t.builder = outer
    return Val(kind, outer.if_(small.ssa, ends[0], ends[1], [kind])[0])


MATRIX_PRODUCT.append(product)
