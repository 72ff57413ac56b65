"""The epilogue of `nest.template` as code on vectors of columns."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen.contraction.arith import Slot
from cuvil.codegen.contraction.epilogue import EpilogueScope
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import I8, i64, splat, vector
from cuvil.codegen.nest_llvm import INDEX_OPS, element_constant, plain_params
from cuvil.codegen.scalars import emit as emit_scalar
from cuvil.codegen.slots import SlotTable
from cuvil.codegen.template_specs import kernel_buffers
from cuvil.ir import nest
from cuvil.ir.names import Operation, Value
from cuvil.ir.types import BufferType, ElementType


@dataclass(frozen=True)
class RegionEpilogue:
    """An epilogue region as the generator's callable: every element op on a vector of columns."""

    template: nest.TemplateOp
    kernel: nest.KernelOp
    facts: TargetFacts
    slots: SlotTable

    def __call__(self, scope: EpilogueScope, acc: ir.Value) -> ir.Value:
        block = self.template.epilogue.block
        values: dict[Value, ir.Value] = dict(
            zip(block.args, [acc, *scope.batch, *scope.rows, scope.col], strict=True)
        )
        emitter = _Vector(self, scope, values, block.args[-1])
        for op in block.ops:
            if isinstance(op, nest.NestYieldOp):
                return values[op.operands[0]]
            emitter.emit(op)
        raise AssertionError("an epilogue ends with nest.yield")


@dataclass
class _Vector:
    epilogue: RegionEpilogue
    scope: EpilogueScope
    values: dict[Value, ir.Value]
    column: Value

    def emit(self, op: Operation) -> None:
        b, values = self.scope.builder, self.values
        args = [values.get(v) for v in op.operands]
        result = op.results[0]
        if isinstance(op, nest.DimOp):
            dim = op.expr.data[0]
            slots = self.epilogue.slots
            values[result] = self.scope.size(dim if isinstance(dim, int) else Slot(slots.of(dim)))
        elif isinstance(op, nest.ConstantOp):
            values[result] = self._constant(op)
        elif isinstance(op, nest.IndexOp):
            values[result] = INDEX_OPS[op.fn.data](b, args[0], args[1])
        elif isinstance(op, nest.LoadOp):
            values[result] = self._load(op)
        elif isinstance(op, nest.ScalarOp):
            kind = op.operands[1 if op.fn.data == "select" else 0].type
            assert isinstance(kind, ElementType)
            values[result] = emit_scalar(
                op.fn.data, b, args, kind.data, attrs=plain_params(op), facts=self.epilogue.facts
            )
        else:
            raise ValueError(f"{op.name} cannot stand in an epilogue")

    def _constant(self, op: nest.ConstantOp) -> ir.Value:
        number = op.properties["value"].value.data  # type: ignore[attr-defined]
        kind = op.results[0].type
        if not isinstance(kind, ElementType):
            return i64(number)
        b = self.scope.builder
        value = element_constant(b, number, kind.data, self.epilogue.facts)
        return splat(b, value, self.scope.lanes)

    def _load(self, op: nest.LoadOp) -> ir.Value:
        kind = op.buffer.type
        assert isinstance(kind, BufferType)
        buffer = kernel_buffers(self.epilogue.template).index(op.buffer)
        offset = self.values[op.offset]
        step = column_step(op.offset, self.column)
        load = {0: self.scope.load_broadcast, 1: self.scope.load}.get(-1 if step is None else step)
        if load is None:
            raise ValueError("an epilogue reads its operands along columns or once per row")
        value = load(buffer, kind.data, offset)
        if kind.data == "bool":
            zero = ir.Constant(vector(I8, self.scope.lanes), None)
            value = self.scope.builder.icmp_unsigned("!=", value, zero)
        return value


def column_step(offset: Value, column: Value) -> int | None:
    """By how much an index grows per column; None where that is not a literal."""
    if offset is column:
        return 1
    owner = offset.owner
    if not isinstance(owner, nest.IndexOp):
        return 0
    left, right = (column_step(v, column) for v in owner.operands)
    fn = owner.fn.data
    if left is None or right is None:
        return None
    if fn in ("add", "sub"):
        return left + right if fn == "add" else left - right
    if (left, right) == (0, 0):
        return 0
    if fn == "mul":
        return _scaled(owner.operands[1], left) if right == 0 else _scaled(owner.operands[0], right)
    return None


def _scaled(factor: Value, step: int) -> int | None:
    owner = factor.owner
    if isinstance(owner, nest.ConstantOp):
        return step * int(owner.properties["value"].value.data)  # type: ignore[attr-defined]
    return None
