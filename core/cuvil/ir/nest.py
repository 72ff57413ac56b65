"""The `nest` dialect: kernels as loops over elements, with templates where loops are not enough.

A kernel's body runs once per task; its arguments are buffers, then the task's index. Addresses are
element offsets computed from `index` values; extents are dim expressions (`nest.dim`) that become
literals or run-time slots. Scalars are the rows of the scalar table (`nest.scalar`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, NoTerminator, Pure

from cuvil.ir.types import BufferType, DimsAttr, ElementType


@irdl_op_definition
class KernelOp(IRDLOperation):
    """One kernel. tasks: how many times the body runs (dims product); each task is independent."""

    name = "nest.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    tasks = prop_def(DimsAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class DimOp(IRDLOperation):
    """The value of a dimension expression."""

    name = "nest.dim"
    expr = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A literal element (`value` as printed number) or index."""

    name = "nest.constant"
    value = prop_def(AnyAttr())
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class IndexOp(IRDLOperation):
    """Indices: add sub mul, div mod (of non-negative numbers), min max, lt le eq (-> bool)."""

    name = "nest.index"
    fn = prop_def(StringAttr)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class ScalarOp(IRDLOperation):
    """A row of the scalar table on elements. dtype: the operands' (first data operand's) type."""

    name = "nest.scalar"
    fn = prop_def(StringAttr)
    params = opt_prop_def(DictionaryAttr)
    args_ = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class ConvertOp(IRDLOperation):
    """Index to integer element or back; element to element conversion is `nest.scalar "cast"`."""

    name = "nest.convert"
    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class CallOp(IRDLOperation):
    """A function on strings (a row of `ops.string_meaning`): strings, then indices, then the buffer
    of its table, then that of the run, where it has them."""

    name = "nest.call"
    fn = prop_def(StringAttr)
    args_ = var_operand_def()
    result = result_def(ElementType)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """The element of a buffer at an element offset."""

    name = "nest.load"
    buffer = operand_def(BufferType)
    offset = operand_def()
    result = result_def(ElementType)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes an element of a buffer."""

    name = "nest.store"
    value = operand_def(ElementType)
    buffer = operand_def(BufferType)
    offset = operand_def()


@irdl_op_definition
class ForOp(IRDLOperation):
    """`for iv in [lo, hi) step`: carries values. Block arguments: iv, carried.

    kind: "" plain, "parallel" (iterations independent, may be vectorised), "reduce" (carried
    values may be re-associated), "unroll" (fully unrolled; lo and hi are literals).
    """

    name = "nest.for"
    kind = prop_def(StringAttr)
    step = prop_def(IntegerAttr)
    lo = operand_def()
    hi = operand_def()
    carried = var_operand_def()
    results_ = var_result_def()
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class IfOp(IRDLOperation):
    """Runs one of two regions; both yield the results."""

    name = "nest.if"
    cond = operand_def()
    results_ = var_result_def()
    then = region_def("single_block")
    orelse = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class NestYieldOp(IRDLOperation):
    """Ends a region of `nest.for`, `nest.if` or an epilogue."""

    name = "nest.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())


@irdl_op_definition
class FailIfOp(IRDLOperation):
    """Makes the kernel return `status` (a cuvil_status) when the condition holds; execution goes on
    with whatever follows, which must stay in bounds all the same."""

    name = "nest.fail_if"
    status = prop_def(IntegerAttr)
    cond = operand_def()


@irdl_op_definition
class ScratchOp(IRDLOperation):
    """A buffer private to the running thread, `bytes` long, 64-byte aligned."""

    name = "nest.scratch"
    bytes = prop_def(DimsAttr)
    result = result_def(BufferType)


@irdl_op_definition
class TemplateOp(IRDLOperation):
    """A generator that the toolkit writes by itself ("contract", "winograd", "depthwise",
    "attention", "few_rows", "lookup").

    spec: its parameters (see the generator's spec class); sizes are `#cuvil.dims`. The epilogue
    gets (accumulator, indices of batch dims, of row dims, column) and yields the stored element.
    A kernel with a template has nothing else in its body.
    """

    name = "nest.template"
    kind = prop_def(StringAttr)
    spec = prop_def(DictionaryAttr)
    buffers = var_operand_def(BufferType)
    epilogue = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class ExternOp(IRDLOperation):
    """Calls the C function of a custom operator, on whole tensors; a status that is not 0 fails.

    meaning: the primitive; arguments: its attributes. args: the buffers of the tensors that are
    there, operands before results, then all their extents. ranks: of all tensors, -1 for an input
    that is absent. written: how many are results. listed: the first of the operands that are passed
    as one list, where there is one; it ends with the last operand.
    """

    name = "nest.extern"
    symbol = prop_def(StringAttr)
    meaning = prop_def(StringAttr)
    arguments = prop_def(DictionaryAttr)
    ranks = prop_def(AnyAttr())
    written = prop_def(IntegerAttr)
    listed = opt_prop_def(IntegerAttr)
    args_ = var_operand_def()

    @property
    def tensor_ranks(self) -> tuple[int, ...]:
        """`ranks` as numbers."""
        return tuple(self.ranks.get_values())  # type: ignore[attr-defined]

    @property
    def list_range(self) -> range:
        """The places of the operands that are passed as one list, among all tensors."""
        end = len(self.tensor_ranks) - self.written.value.data
        return range(end if self.listed is None else self.listed.value.data, end)

    @property
    def buffers(self) -> tuple[SSAValue, ...]:
        """Those of the tensors that are there."""
        return tuple(self.args_[: sum(rank >= 0 for rank in self.tensor_ranks)])

    @property
    def targets(self) -> tuple[SSAValue, ...]:
        """The buffers that it writes."""
        return self.buffers[len(self.buffers) - self.written.value.data :]

    @property
    def extents(self) -> list[tuple[SSAValue, ...] | None]:
        """Of all tensors, None for one that is absent."""
        waiting = iter(self.args_[len(self.buffers) :])
        return [
            None if rank < 0 else tuple(next(waiting) for _ in range(rank))
            for rank in self.tensor_ranks
        ]


OPS = [
    KernelOp, DimOp, ConstantOp, IndexOp, ScalarOp, ConvertOp, CallOp, LoadOp, StoreOp, ForOp, IfOp,
    NestYieldOp, FailIfOp, ScratchOp, ExternOp, TemplateOp,
]  # fmt: skip
NEST = Dialect("nest", list(OPS), [BufferType, ElementType])
