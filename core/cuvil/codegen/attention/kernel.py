"""The attention kernel: tasks, and the panels of each."""

from llvmlite import ir

from cuvil.codegen.attention.panel import panel_function
from cuvil.codegen.attention.schedule import make_cut, make_panels, panel_width
from cuvil.codegen.attention.spec import AttentionSpec
from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.epilogue import Epilogue, identity
from cuvil.codegen.contraction.tiles import unravel
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import I32, KERNEL_TYPE, for_range, i64, set_target


def emit_attention(
    module: ir.Module,
    name: str,
    spec: AttentionSpec,
    facts: TargetFacts,
    epilogue: Epilogue = identity,
) -> ir.Function:
    """Emits `i32 name(buffers, dims, begin, end, scratch)`, which computes tasks [begin, end).

    Tasks number `task_count`; scratch must hold `scratch_bytes`. The epilogue sees one row, the
    query, and the batch indices. Any extent may be zero: without keys the sums are zero.
    """
    function = ir.Function(module, KERNEL_TYPE, name)
    set_target(function, facts)
    buffers, dims, begin, end, scratch = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    at = Arith(b, dims)
    cut = make_cut(spec, facts, at)
    first = at.mul(begin, cut.each)
    last = at.minimum(at.mul(end, cut.each), cut.units)
    panels = make_panels(spec, facts)
    functions = [(p.width, panel_function(function, spec, facts, epilogue, p)) for p in panels]
    with for_range(b, at.value(first), at.value(last)) as unit:
        batch, nth = unravel(at, unit, [0, cut.panels])
        row = at.mul(nth, panel_width(spec, facts))
        rows = at.minimum(panel_width(spec, facts), at.sub(at.size(spec.rows.extent), row))
        indices = unravel(at, batch, [at.size(dim.extent) for dim in spec.batch])
        values = [at.value(x) for x in (row, rows, *indices)]
        _choose(b, functions, [buffers, dims, scratch, *values], at.value(rows))
    b.ret(ir.Constant(I32, 0))
    return function


def _choose(
    b: ir.IRBuilder,
    functions: list[tuple[Index, ir.Function]],
    arguments: list[ir.Value],
    rows: ir.Value,
) -> None:
    """Calls the narrowest panel that holds the rows. functions: (width, function), widest first."""
    (_, widest), *others = functions
    if not others:
        b.call(widest, arguments)
        return
    fits = b.icmp_signed("<=", rows, i64(others[0][0]))
    with b.if_else(fits) as (then, otherwise):
        with then:
            _choose(b, others, arguments, rows)
        with otherwise:
            b.call(widest, arguments)
