"""The `py` dialect: a Python function with every type known.

Control flow stays structured, as it was written; local variables are slots that `py.set` writes and
`py.get` reads, one per name and type. What a value's type allows is one op, `py.apply`, whose
functions are the rows of `codegen.python`: "int.add", "list.append", "array.load".
An op that may fail says where by its site: a number in the function's table of failures.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Data, Dialect, SSAValue, TypeAttribute
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
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator

from cuvil.ir.py_types import Type, parse


class ValueType(Data[Type], TypeAttribute):
    """`!py.value<"[(ff)">`: a value of the type with this text (see `py_types`)."""

    name = "py.value"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Type:
        with parser.in_angle_brackets():
            return parse(parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f'<"{self.data.code}">')


def type_of(value: SSAValue) -> Type:
    """The type of a value."""
    assert isinstance(value.type, ValueType)
    return value.type.data


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function. Block arguments: its parameters. result: the type that it returns.

    recursive: it may call itself, so that the depth is counted, with a failure's site.
    """

    name = "py.func"
    sym_name = prop_def(SymbolNameConstraint())
    result = prop_def(ValueType)
    recursive = opt_prop_def(IntegerAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A literal: int, float or str, bool as an int; None has no value."""

    name = "py.constant"
    value = opt_prop_def(AnyAttr())
    result = result_def(ValueType)


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """A function of the table on values. site: of its failure; params: numbers and texts."""

    name = "py.apply"
    fn = prop_def(StringAttr)
    site = opt_prop_def(IntegerAttr)
    params = opt_prop_def(ArrayAttr)
    args_ = var_operand_def(ValueType)
    results_ = var_result_def(ValueType)


@irdl_op_definition
class CallOp(IRDLOperation):
    """Calls a function of the module."""

    name = "py.call"
    callee = prop_def(StringAttr)
    args_ = var_operand_def(ValueType)
    result = result_def(ValueType)


@irdl_op_definition
class GetOp(IRDLOperation):
    """The value of a local variable. site: of the failure where it may have none."""

    name = "py.get"
    variable = prop_def(StringAttr)
    site = opt_prop_def(IntegerAttr)
    result = result_def(ValueType)


@irdl_op_definition
class SetOp(IRDLOperation):
    """Gives a local variable a value."""

    name = "py.set"
    variable = prop_def(StringAttr)
    value = operand_def(ValueType)


@irdl_op_definition
class IfOp(IRDLOperation):
    """One of two blocks; each ends in `py.yield` where there are results."""

    name = "py.if"
    condition = operand_def(ValueType)
    results_ = var_result_def(ValueType)
    then = region_def("single_block")
    otherwise = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class WhileOp(IRDLOperation):
    """`condition` yields a bool; while it is true, `body` runs. break and continue are inside."""

    name = "py.while"
    condition = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class ForOp(IRDLOperation):
    """`for i in range(start, stop, step)`; i is the block's argument. step is not 0.

    Where step is a literal, `step_value` has it.
    """

    name = "py.for"
    step_value = opt_prop_def(IntegerAttr)
    start = operand_def(ValueType)
    stop = operand_def(ValueType)
    step = operand_def(ValueType)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class MapOp(IRDLOperation):
    """Computes an array element by element; operands broadcast as numpy's do.

    Block arguments: an element per operand, the target apart. The block yields one element. into:
    the first operand is the target, else the result is a new array. site: shapes do not fit.
    """

    name = "py.map"
    site = prop_def(IntegerAttr)
    into = prop_def(IntegerAttr)
    args_ = var_operand_def(ValueType)
    results_ = var_result_def(ValueType)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """One number from all elements that the block yields, which is as that of `py.map`.

    fn: sum, prod, max, min, any, all, argmax or argmin (place in C order). site: of an empty array
    where there is no answer, and of shapes that do not fit.
    """

    name = "py.reduce"
    fn = prop_def(StringAttr)
    site = prop_def(IntegerAttr)
    args_ = var_operand_def(ValueType)
    result = result_def(ValueType)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The results of a block."""

    name = "py.yield"
    args_ = var_operand_def(ValueType)
    traits = traits_def(IsTerminator())


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Returns a value of one of the types of the function's result."""

    name = "py.return"
    value = operand_def(ValueType)


@irdl_op_definition
class BreakOp(IRDLOperation):
    """Leaves the innermost loop."""

    name = "py.break"


@irdl_op_definition
class ContinueOp(IRDLOperation):
    """Goes on with the next trip of the innermost loop."""

    name = "py.continue"


@irdl_op_definition
class FailOp(IRDLOperation):
    """Fails: an exception, or something for the interpreter."""

    name = "py.fail"
    site = prop_def(IntegerAttr)


OPS = [
    FuncOp, ConstantOp, ApplyOp, CallOp, GetOp, SetOp, IfOp, WhileOp, ForOp, MapOp, ReduceOp,
    YieldOp, ReturnOp, BreakOp, ContinueOp, FailOp,
]  # fmt: skip
PY = Dialect("py", list(OPS), [ValueType])
