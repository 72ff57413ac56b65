"""Takes everything but compiled code out of the process: what passes then, machine code computed.

Numpy may compute while a model is compiled, as constants are folded. While one runs, the only
part of Cuvil in Python that may take a hand is the engine, which hands arrays over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import onnx.reference
import onnx.reference.op_run

from cuvil.engine.engine import Engine
from cuvil.ops import interpreter
from cuvil.plan import interpreter as plan_interpreter

__all__ = ["NotNativeError", "install", "refuse", "watched"]

_MUST_NOT_RUN = ("cuvil.", "cuvil_backend_", "onnx")
_MAY_RUN = ("cuvil.engine.", "cuvil.errors")  # between a caller's arrays and compiled code

_ENTRIES: tuple[Callable[..., Any], ...] = (
    interpreter.run,
    interpreter.trace,
    interpreter.evaluate_op,
    plan_interpreter.run_plan,
    onnx.reference.ReferenceEvaluator.run,
    onnx.reference.op_run.OpRun.run,
)


class NotNativeError(Exception):
    """Something that is not compiled code was about to compute."""


def install() -> None:
    """For the rest of the process: interpreters raise, and runs of engines are `watched`."""
    for entry in _ENTRIES:
        entry.__code__ = _gone.__code__  # whatever names it goes by
    Engine.run = watched(Engine.run)  # type: ignore[method-assign]
    Engine.__call__ = watched(Engine.__call__)  # type: ignore[method-assign]


def refuse() -> NoReturn:
    """Raises NotNativeError."""
    raise NotNativeError("this is out of the process: only compiled code may compute")


def _gone(*_: Any, **__: Any) -> None:
    __import__("tools.conformance.guard", fromlist=["refuse"]).refuse()


def watched(run: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; NotNativeError where it enters other parts of Cuvil, or onnx."""

    def guarded(*args: Any, **keywords: Any) -> Any:
        entered: dict[str, None] = {}

        def look(frame: FrameType, event: str, _: Any) -> None:
            module = str(frame.f_globals.get("__name__"))
            foreign = module.startswith(_MUST_NOT_RUN) and not module.startswith(_MAY_RUN)
            if event == "call" and foreign:
                entered[f"{module}.{frame.f_code.co_qualname}"] = None

        before = sys.getprofile()
        sys.setprofile(look)
        try:
            result = run(*args, **keywords)
        finally:
            sys.setprofile(before)
        if entered:
            raise NotNativeError(f"a run of compiled code entered {', '.join(entered)}")
        return result

    return guarded
