"""Every operator with inputs and attributes that make no sense for most: an error that names the
node, never one of the compiler itself: rows B26 and B54, and confused kinds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from cuvil.errors import Error, InternalError
from cuvil.frontends.onnx import import_model
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
CONFUSED: tuple[Any, ...] = (0, -1, 1 << 62, 1.5, float("nan"), "x", [0], [2, -1], [1.5], ["a"])
NEWEST = {"": 25, "ai.onnx.ml": 5}


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


def refused_or_imported(m: Model, what: object) -> None:
    try:
        import_model(m.proto())
    except InternalError as error:
        pytest.fail(f"{what}: {error}")
    except Error as error:
        assert "\n" not in str(error), what


@pytest.mark.parametrize("form", ["fixed", "symbolic", "folded"])
@pytest.mark.parametrize("kind", INPUTS)
def test_b26_inputs_of_every_operator(kind: str, form: str) -> None:
    for op in known():
        for count in {op.required, op.named}:
            values = [INPUTS[kind](k) for k in range(count)]
            refused_or_imported(model(op, form, values, {}), (op.name, count))


def test_sequences_where_tensors_are_due() -> None:
    for op in known():
        values: list[Any] = [np.ones((1, 2), np.float32)] * op.named
        for k in range(op.named):
            given = [*values[:k], [values[k]], *values[k + 1 :]]
            refused_or_imported(model(op, "fixed", given, required(op)), (op.name, k))


@pytest.mark.parametrize("value", CONFUSED, ids=repr)
def test_attributes_of_another_kind(value: Any) -> None:
    for op in known():
        values = [INPUTS["image and numbers"](k) for k in range(op.required)]
        for name in op.attrs:
            with suppress(TypeError, ValueError):  # onnx's own helper refuses some
                m = model(op, "fixed", values, {**required(op), name: value})
                refused_or_imported(m, (op.name, name, value))


def test_a_fault_of_the_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not put on the model, and the cause is kept; a message is one line."""
    m = Model()
    m.keep(m.op("Neg", m.feed(np.ones(3, np.float32))))

    def broken(*_: Any, **__: Any) -> Any:
        return None.nothing  # type: ignore[attr-defined]

    with monkeypatch.context() as patch:
        patch.setattr("cuvil.frontends.onnx.builder.FoldingBuilder.emit", broken)
        with pytest.raises(InternalError, match=r"\(Neg\): internal error.*report it") as caught:
            m.engine()
    assert isinstance(caught.value.__cause__, AttributeError)
    for stage in ("run_phases", "make_plan", "build_code", "write_weights"):
        with monkeypatch.context() as patch:
            patch.setattr(f"cuvil.pipeline.{stage}", broken)
            n = Model()
            n.keep(n.op("MatMul", n.feed(np.ones((3, 64), "f4")), n.const(np.ones((64, 9), "f4"))))
            with pytest.raises(InternalError, match="please report it") as caught:
                n.engine()
        assert "\n" not in str(caught.value)
