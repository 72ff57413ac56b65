"""Every operator with inputs and attributes that make no sense for most: an error that names the
node, never one of the compiler itself: rows B26 and B54, and confused kinds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from cuvil.errors import Error, InternalError
from cuvil.frontends.onnx import import_model
from tests.faults.cases import Model
from tests.faults.operators import INPUTS, known, model, required

CONFUSED: tuple[Any, ...] = (0, -1, 1 << 62, 1.5, float("nan"), "x", [0], [2, -1], [1.5], ["a"])


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
    for stage in ("run_phases", "make_plan", "build_code", "weights_image"):
        with monkeypatch.context() as patch:
            patch.setattr(f"cuvil.pipeline.{stage}", broken)
            n = Model()
            n.keep(n.op("MatMul", n.feed(np.ones((3, 64), "f4")), n.const(np.ones((64, 9), "f4"))))
            with pytest.raises(InternalError, match="please report it") as caught:
                n.engine()
        assert "\n" not in str(caught.value)
