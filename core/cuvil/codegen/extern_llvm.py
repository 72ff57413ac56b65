"""`nest.extern` to LLVM IR: the call of a custom operator's C function.

How it is called is told by `ops.custom.native.prototype`: both follow the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from cuvil.codegen.llvm_util import F64, I32, I64, PTR, callee, declare, i64, stack_array
from cuvil.ir import nest
from cuvil.ir.attrs import read_attrs
from cuvil.ir.record import PRIMITIVES
from cuvil.ops.custom.meaning import ABSENT

if TYPE_CHECKING:
    from cuvil.codegen.nest_llvm import KernelEmitter

FAILED = 14  # CUVIL_CUSTOM_FAILED of cuvil/abi.h
NULL = ir.Constant(PTR, None)


def emit_extern(e: KernelEmitter, op: nest.ExternOp) -> None:
    """Calls the function; a status that is not 0 becomes the kernel's."""
    assert e.status is not None
    words = _tensors(e, op) + _attributes(e, op)
    kind = ir.FunctionType(I32, [word.type for word in words])
    function = declare(e.module, op.symbol.data, I32, [word.type for word in words])
    status = e.b.call(callee(e.b, function, kind), words)
    failed = e.b.icmp_signed("!=", status, ir.Constant(I32, 0))
    code = e.b.or_(e.b.shl(status, ir.Constant(I32, 8)), ir.Constant(I32, FAILED))
    e.b.store(e.b.select(failed, code, e.b.load(e.status, typ=I32)), e.status)


def _tensors(e: KernelEmitter, op: nest.ExternOp) -> list[ir.Value]:
    """Data, extents and rank of each tensor."""
    rows: list[list[ir.Value]] = []
    buffers = iter(op.buffers)
    for dims in op.extents:
        if dims is None:
            rows.append([NULL, NULL, i64(0)])
            continue
        table = _table(e, I64, [e.values[v] for v in dims])
        rows.append([e.values[next(buffers)], table, i64(len(dims))])
    listed = op.list_range
    if op.listed is not None:  # arrays of data, extents and ranks, and how many
        found = [rows[i] for i in listed]
        arrays = [
            _table(e, kind, [row[k] for row in found]) for k, kind in enumerate((PTR, PTR, I64))
        ]
        rows[listed.start : listed.stop] = [[*arrays, i64(len(listed))]]
    return [word for row in rows for word in row]


def _table(e: KernelEmitter, kind: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
    """Values on the stack; not NULL where there are none, for a scalar is not absent."""
    entry = e.b.function.entry_basic_block
    start = ir.IRBuilder()
    start.position_at_start(entry)
    table = stack_array(start, kind, max(1, len(values)))
    for i, value in enumerate(values):
        e.b.store(value, e.b.gep(table, [i64(i)], source_etype=kind))
    return table


def _attributes(e: KernelEmitter, op: nest.ExternOp) -> list[ir.Value]:
    schema = PRIMITIVES[op.meaning.data].attrs
    values = vars(read_attrs(schema, op.arguments.data))
    words: list[ir.Value] = []
    for name, attr in schema.items():
        if name != ABSENT:
            words += _attribute(e.module, attr.kind, values[name])
    return words


def _attribute(module: ir.Module, kind: str, value: object) -> list[ir.Value]:
    if kind in ("ints", "floats", "bools", "strs"):
        assert isinstance(value, tuple)
        items = [_attribute(module, kind[:-1], x)[0] for x in value]
        element = items[0].type if items else I64
        array = ir.Constant(ir.ArrayType(element, len(items)), items)
        return [_constant(module, array) if items else NULL, i64(len(items))]
    if kind == "str":
        text = bytearray(str(value).encode() + b"\0")
        return [_constant(module, ir.Constant(ir.ArrayType(ir.IntType(8), len(text)), text))]
    if kind == "float":
        return [ir.Constant(F64, float(value))]  # type: ignore[arg-type]
    return [i64(int(value))]  # type: ignore[call-overload]


def _constant(module: ir.Module, value: ir.Constant) -> ir.Value:
    name = module.get_unique_name("cuvil.argument")
    variable = ir.GlobalVariable(module, value.type, name)
    variable.linkage, variable.global_constant = "internal", True
    variable.initializer, variable.align = value, 8
    return variable
