"""Copies rows of A into scratch at a row pitch that spreads them over the sets of L1."""

from llvmlite import ir

from cuvil.codegen.contraction.dot import align_of
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I16,
    I64,
    PTR,
    address,
    element_type,
    for_range,
    i64,
    internal_function,
    load,
    store,
    vector,
)
from cuvil.codegen.scalars.convert import load_convert


def pack_rows_function(
    module: ir.Module, facts: TargetFacts, dtype: str, widened: bool = False
) -> ir.Function:
    """The module's copy function for a dtype, emitted at its first use. widened: from float16 to
    float32.

    void f(from, to, outer, inner, outer stride, inner stride, columns, pitch, group): row (i, j)
    goes to to[(i*group + j) * pitch]; strides count elements.
    """
    name = f"pack.rows.{dtype}{'w' * widened}"
    if name in module.globals:
        return module.globals[name]
    function = internal_function(module, name, [PTR, PTR] + [I64] * 7, facts)
    for pointer in function.args[:2]:
        pointer.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    source, target, outer, inner, outer_stride, inner_stride, columns, pitch, group = function.args
    kept = "f32" if widened else dtype
    lanes, align = facts.lanes(kept), align_of(dtype)
    element = I16 if widened else element_type(dtype)

    def copied(k: ir.Value, kind: ir.Type) -> ir.Value:
        found = load(b, read, k, kind, align)
        return load_convert(b, found, dtype, facts) if widened else found

    whole = b.sub(columns, b.urem(columns, i64(lanes)))
    with for_range(b, i64(0), outer) as i, for_range(b, i64(0), inner) as j:
        start = b.add(b.mul(i, outer_stride), b.mul(j, inner_stride))
        row = b.mul(b.add(b.mul(i, group), j), pitch)
        read, write = (
            address(b, source, start, element),
            address(b, target, row, element_type(kept)),
        )
        with for_range(b, i64(0), whole, i64(lanes)) as k:
            store(b, copied(k, vector(element, lanes)), write, k)
        with for_range(b, whole, columns) as k:
            store(b, copied(k, element), write, k)
    b.ret_void()
    return function
