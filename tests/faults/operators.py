"""Every operator as a model of one node, with inputs that make no sense for most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuvil.ops.onnx.registry import REQUIRED, OnnxOp, records
from tests.faults.cases import Array, Model

INPUTS: dict[str, Callable[[int], Array]] = {
    "scalars": lambda k: np.float32(2),
    "nothing": lambda k: np.zeros(0, np.float32),
    "no rows": lambda k: np.zeros((0, 3), np.float32),
    "numbers": lambda k: np.array([1, 2]),
    "bools": lambda k: np.array([[True]]),
    "image and numbers": lambda k: np.array([1, 2]) if k else np.ones((1, 2, 4, 4), np.float32),
}


def known() -> list[OnnxOp]:
    """The newest record of every operator."""
    return list({(r.domain, r.name): r for r in records()}.values())


def required(op: OnnxOp) -> dict[str, Any]:
    """The attributes that must be there, as numbers."""
    return {name: 1 for name, default in op.attrs.items() if default is REQUIRED}


def model(op: OnnxOp, form: str, inputs: list[Any], attrs: dict[str, Any]) -> Model:
    """One node. An input is an array, or a list of one, which stands for a sequence."""
    m = Model(max(op.since, 18) if op.domain == "" else 18, form)
    names = [m.op("SequenceConstruct", m.feed(v[0])) if isinstance(v, list) else m.feed(v)
             for v in inputs]  # fmt: skip
    where = {"domain": op.domain} if op.domain else {}
    m.keep(m.op(op.name, *names, **where, **attrs))
    return m
