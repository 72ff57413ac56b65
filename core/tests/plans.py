"""Plans of small ONNX models, and plans that are changed as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from onnx_models import model

from cuvil.frontends.onnx import import_model
from cuvil.ir.text import parse_ir, print_ir
from cuvil.plan.plan import Plan, make_plan
from cuvil.rewrite.engine import run_phases


def plan_of(graph: str, **constants: np.ndarray) -> Plan:
    """The plan of the ONNX text of a graph, rewritten; constants by the names of inputs."""
    made = import_model(model(graph), values=constants)
    run_phases(made)
    return make_plan(made)


def changed(plan: Plan, change: Callable[[str], str]) -> Plan:
    """The plan with the text of its program and of its kernels changed; types are not checked."""
    text = "".join(print_ir(op) for op in (plan.program, *plan.kernels.values()))
    other = change(text)
    assert other != text, "nothing was changed"
    ops = list(parse_ir(other).body.block.ops)
    kernels = {op.sym_name.data: op for op in ops[1:]}
    return replace(plan, program=ops[0], kernels=kernels)
