"""What the suite can run on beside compiled code: two levels of the compiler, and a peer."""

from __future__ import annotations

from onnx.backend.base import Backend

from cuvil.ir.graph import Graph
from cuvil.onnx_backend import Compiled, CuvilBackend
from cuvil.ops import interpreter
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases


class ReferenceBackend(CuvilBackend):
    """The numpy interpreter: it checks the importer and says nothing of compiled code."""

    @staticmethod
    def compile_graph(graph: Graph) -> Compiled:
        return lambda feeds: interpreter.run(graph, feeds)


class PlanBackend(CuvilBackend):
    """The program and the kernels that compiled code is made from, verified and interpreted."""

    @staticmethod
    def compile_graph(graph: Graph) -> Compiled:
        run_phases(graph)
        plan = make_plan(graph)
        verify_plan(plan)
        return lambda feeds: run_plan(plan, feeds)


def peer() -> type[Backend]:
    """ONNX Runtime by its own module for this suite, quiet."""
    import onnxruntime
    from onnxruntime.backend.backend import OnnxRuntimeBackend

    onnxruntime.set_default_logger_severity(4)
    return OnnxRuntimeBackend
