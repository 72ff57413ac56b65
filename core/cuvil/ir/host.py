"""The `host` dialect: the program around the kernels.

Buffers are SSA values of `!nest.buffer`; where they lie is planned (offsets into the arena or the
weights of a memory space). The host computes on its own buffers (space and queue "host"); work for
a device goes on the queue of that name, is done in order, and is waited for by tickets.

Dim expressions are evaluated into slots before a run; symbols that only the run finds (loop
counters, produced extents) are bound by `host.for` and `host.bind`, and expressions of them
are evaluated where they are used.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, NoTerminator

from cuvil.ir.types import BufferType, DimsAttr


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """The whole model: one block, no arguments. arena_bytes: the extent of the host's arena."""

    name = "host.program"
    sym_name = prop_def(SymbolNameConstraint())
    arena_bytes = prop_def(DimsAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class ArgumentOp(IRDLOperation):
    """An input (index < inputs) or output tensor of the caller's."""

    name = "host.argument"
    index = prop_def(IntegerAttr)
    result = result_def(BufferType)


@irdl_op_definition
class WeightOp(IRDLOperation):
    """A constant at a byte offset of a space's weights. key: its content hash in the pool."""

    name = "host.weight"
    key = prop_def(StringAttr)
    offset = prop_def(IntegerAttr)
    space = prop_def(StringAttr)
    result = result_def(BufferType)


@irdl_op_definition
class RunOp(IRDLOperation):
    """The run itself, for kernels that make strings. Nothing reads or writes it as memory."""

    name = "host.run"
    result = result_def(BufferType)


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A planned buffer: byte offset into the arena of a memory space."""

    name = "host.alloc"
    offset = prop_def(DimsAttr)
    bytes = prop_def(DimsAttr)
    space = prop_def(StringAttr)
    result = result_def(BufferType)


@irdl_op_definition
class ViewOp(IRDLOperation):
    """A buffer that starts `offset` bytes into another."""

    name = "host.view"
    offset = prop_def(DimsAttr)
    source = operand_def(BufferType)
    result = result_def(BufferType)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs a kernel over its tasks, or puts a device's kernel with its dims on a queue.

    site: row of the artefact's table of node names."""

    name = "host.launch"
    kernel = prop_def(StringAttr)
    tasks = prop_def(DimsAttr)
    site = prop_def(IntegerAttr)
    queue = prop_def(StringAttr)
    dims = prop_def(DimsAttr)
    buffers = var_operand_def(BufferType)


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copies bytes. On a device's queue, one buffer or both lie in its memory.

    site: as of a launch, -1 for none."""

    name = "host.copy"
    bytes = prop_def(DimsAttr)
    site = prop_def(IntegerAttr)
    queue = prop_def(StringAttr)
    source = operand_def(BufferType)
    target = operand_def(BufferType)


@irdl_op_definition
class SignalOp(IRDLOperation):
    """Gives a number to all that is on a device's queue so far."""

    name = "host.signal"
    queue = prop_def(StringAttr)
    ticket = prop_def(IntegerAttr)


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Goes on when the work that the ticket stands for is done."""

    name = "host.wait"
    queue = prop_def(StringAttr)
    ticket = prop_def(IntegerAttr)


@irdl_op_definition
class IfOp(IRDLOperation):
    """Runs a region by a bool element in host memory; regions write their results to buffers."""

    name = "host.if"
    cond = operand_def(BufferType)
    then = region_def("single_block")
    orelse = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class WhenOp(IRDLOperation):
    """Runs `then` where each extent of left is the one of right, else `orelse`: programs for
    particular shapes, and the one for all others."""

    name = "host.when"
    left = prop_def(DimsAttr)
    right = prop_def(DimsAttr)
    then = region_def("single_block")
    orelse = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class ForOp(IRDLOperation):
    """Runs the region with `symbol` bound to 0 .. trip - 1. Ends early when the bool element of
    `cond` (no operand: never) is false before an iteration."""

    name = "host.for"
    symbol = prop_def(StringAttr)
    trip = prop_def(DimsAttr)
    cond = var_operand_def(BufferType)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class BindOp(IRDLOperation):
    """Binds a symbol to the i64 element of a buffer: an extent that the run has found.

    Outside [least, greatest] the run fails with CUVIL_SHAPE_MISMATCH at the site."""

    name = "host.bind"
    site = prop_def(IntegerAttr)
    symbol = prop_def(StringAttr)
    least = prop_def(IntegerAttr)
    greatest = prop_def(IntegerAttr)
    source = operand_def(BufferType)


@irdl_op_definition
class CheckOp(IRDLOperation):
    """Fails the run with CUVIL_SHAPE_MISMATCH unless left `relation` right: "eq" or "ge".

    Checks of input symbols alone, outside of regions, are made once per shape, before the run."""

    name = "host.check"
    left = prop_def(DimsAttr)
    right = prop_def(DimsAttr)
    relation = prop_def(StringAttr)
    site = prop_def(IntegerAttr)


@irdl_op_definition
class GrowingOp(IRDLOperation):
    """A buffer without upper bound, where `host.grow` has last put it."""

    name = "host.growing"
    number = prop_def(IntegerAttr)
    result = result_def(BufferType)


@irdl_op_definition
class GrowOp(IRDLOperation):
    """Makes growing buffer `number` at least `bytes` long, by the runtime's allocate. keep: with
    what it holds; else that is lost. The run fails with CUVIL_OUT_OF_MEMORY."""

    name = "host.grow"
    number = prop_def(IntegerAttr)
    bytes = prop_def(DimsAttr)
    keep = prop_def(BoolAttr)


@irdl_op_definition
class GiveOp(IRDLOperation):
    """The growing buffer becomes the data of an output without upper bound."""

    name = "host.give"
    index = prop_def(IntegerAttr)
    source = operand_def(BufferType)


@irdl_op_definition
class HostReturnOp(IRDLOperation):
    """Ends the program or a region."""

    name = "host.return"
    traits = traits_def(IsTerminator())


OPS = [
    ProgramOp, ArgumentOp, WeightOp, AllocOp, ViewOp, LaunchOp, CopyOp, SignalOp, WaitOp, IfOp,
    WhenOp, ForOp, BindOp, CheckOp, GrowingOp, GrowOp, GiveOp, RunOp, HostReturnOp,
]  # fmt: skip
HOST = Dialect("host", list(OPS), [])
