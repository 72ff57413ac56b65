"""Text of the IR: MLIR's generic form in, and out; one context that knows every dialect."""

from __future__ import annotations

from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Dialect, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from cuvil.errors import ModelError
from cuvil.ir.graph import GraphOp, ReturnOp, YieldOp
from cuvil.ir.host import HOST
from cuvil.ir.nest import NEST
from cuvil.ir.record import dialect
from cuvil.ir.types import DimsAttr, TensorType


def context() -> Context:
    """A parsing context with `builtin`, `cuvil`, `nest` and `host` loaded."""
    cx = Context()
    tensors = dialect()
    ops = [*tensors.operations, GraphOp, ReturnOp, YieldOp]
    for item in (Builtin, Dialect("cuvil", ops, [TensorType, DimsAttr]), NEST, HOST):
        cx.load_dialect(item)
    return cx


def print_ir(op: Operation, locations: bool = False) -> str:
    """The op and what it holds as MLIR text; with locations it still parses back."""
    stream = StringIO()
    Printer(stream=stream, print_generic_format=True, print_debuginfo=locations).print_op(op)
    return stream.getvalue() + "\n"


def parse_ir(text: str, name: str = "<text>") -> ModuleOp:
    """Parses and verifies a module. Raises ModelError with the place and the reason."""
    try:
        module = Parser(context(), text, name).parse_module()
        module.verify()
    except (ParseError, VerifyException, ValueError) as error:
        raise ModelError(f"{name}: {error}") from error
    return module
