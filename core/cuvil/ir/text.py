"""Text of the IR: MLIR's generic form in, and out; one context that knows every dialect."""

from __future__ import annotations

import re
from io import StringIO
from typing import NoReturn

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
from cuvil.ir.py import PY
from cuvil.ir.record import dialect
from cuvil.ir.types import DimsAttr, TensorType


def context() -> Context:
    """A parsing context with `builtin`, `cuvil`, `nest`, `host` and `py` loaded."""
    cx = Context()
    tensors = dialect()
    ops: list[type[Operation]] = [*tensors.operations, GraphOp, ReturnOp, YieldOp]
    for item in (Builtin, Dialect("cuvil", ops, [TensorType, DimsAttr]), NEST, HOST, PY):
        cx.load_dialect(item)
    return cx


def print_ir(op: Operation, locations: bool = False) -> str:
    """The op and what it holds as MLIR text; with locations it still parses back."""
    stream = StringIO()
    Printer(stream=stream, print_generic_format=True, print_debuginfo=locations).print_op(op)
    return stream.getvalue() + "\n"


def parse_ir(text: str, name: str = "<text>") -> ModuleOp:
    """Parses and verifies a module. Raises ModelError with the place (`name:line:column` where the
    text does not parse) and the reason."""
    _check_strings(text, name)
    parser = Parser(context(), text, name)
    try:
        module = parser.parse_module()
    except ParseError as error:
        _refuse(text, name, error.span.start, error.msg)
    except (Exception, RecursionError) as error:  # what xDSL and the dialects trip over
        reason = str(error.args[0]) if error.args else type(error).__name__
        _refuse(text, name, parser.pos, reason)
    try:
        module.verify()
    except (VerifyException, ValueError, KeyError, TypeError, IndexError) as error:
        raise ModelError(f"{name}: {error}") from error
    return module


_QUOTED = re.compile(r"""//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"|(")""")


def _check_strings(text: str, name: str) -> None:
    """Finds a string that does not end: xDSL's lexer takes exponential time to see that."""
    for match in _QUOTED.finditer(text):
        if match[1]:
            _refuse(text, name, match.start(), "a string that does not end on its line")


def _refuse(text: str, name: str, position: int, reason: str) -> NoReturn:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    raise ModelError(f"{name}:{line}:{column}: {reason.strip()}") from None
