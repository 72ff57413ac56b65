"""Dropout: nothing in inference; a node that is told to train drops elements at random."""

from __future__ import annotations

from cuvil.ops.compose.helpers import narrow
from cuvil.ops.onnx.constant import filled
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.random import seed_of, uniform, wide_name
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("Dropout")
def dropout_legacy(
    cx: Cx,
    x: Value,
    *,
    ratio: float = 0.5,
    is_test: int = 0,
    consumed_inputs: tuple[int, ...] = (),
) -> tuple[Value, ...]:
    """Before opset 7 a node trains unless it says is_test."""
    if not is_test and ratio:
        cx.fail("is_test=0 drops elements at random: for inference set is_test=1")
    return dropout_attributes(cx, x)


@onnx_op("Dropout", since=7)
def dropout_attributes(cx: Cx, x: Value, *, ratio: float = 0.5) -> tuple[Value, ...]:
    """Inference: nothing is dropped. The mask is of x's type."""
    mask = filled(cx, cx.b.scalar(1, x), cx.dims(x)) if any(cx.outputs[1:]) else None
    return (x, mask)


@onnx_op("Dropout", since=10)
def dropout(cx: Cx, x: Value, *, ratio: float = 0.5) -> tuple[Value, ...]:
    """The mask is boolean from opset 10 on."""
    return (x, filled(cx, cx.b.scalar(True, "bool"), cx.dims(x)) if any(cx.outputs[1:]) else None)


@onnx_op("Dropout", since=12)
def dropout_inputs(
    cx: Cx, x: Value, ratio: Value = None, training: Value = None, *, seed: int | None = None
) -> tuple[Value, ...]:
    """As before, unless training_mode is true: elements are dropped with a probability of
    `ratio`, and the others grow by 1 / (1 - ratio)."""
    trains = None if training is None else cx.known(training)
    chance = None if ratio is None else cx.known(ratio)
    never = training is None or (trains is not None and not trains.any())
    if never or (chance is not None and not chance.any()):
        return dropout(cx, x)
    b, kind = cx.b, wide_name(cx.type(x).dtype.name)
    share = b.scalar(0.5, kind) if ratio is None else _scalar(cx, b.cast(ratio, to=kind))
    kept = b.ge(uniform(cx, cx.dims(x), seed_of(cx, seed), kind), share)
    if trains is None:
        kept = b.or_(kept, b.not_(_scalar(cx, training)))
        share = b.select(_scalar(cx, training), share, b.scalar(0, kind))
    value = b.div(b.cast(x, to=kind), b.sub(b.scalar(1, kind), share))
    return narrow(cx, b.select(kept, value, b.scalar(0, value)), x), kept


def _scalar(cx: Cx, x: Value) -> Value:
    return x if cx.type(x).rank == 0 else cx.b.reshape(x, dims=())
