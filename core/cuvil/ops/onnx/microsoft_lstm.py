"""com.microsoft: LSTM with weights in 8 bits, whose inputs and states are held in 8 bits, too."""

from __future__ import annotations

from dataclasses import dataclass

from cuvil.ir.names import Value as SSAValue
from cuvil.ops.onnx.activations_table import activations_for
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.control import step_of
from cuvil.ops.onnx.microsoft import MS
from cuvil.ops.onnx.microsoft_quant import dynamically_quantized, matmul_integer_to_float
from cuvil.ops.onnx.recurrent import Floats, Lstm, Strings
from cuvil.ops.onnx.recurrent_loop import Layer, Step, directions, run_layer
from cuvil.ops.onnx.registry import onnx_op


@dataclass(frozen=True)
class _Quantised(Lstm):
    """scale, zero: of the recurrent weights [4 * H, H]."""

    scale: Value
    zero: Value

    def product(self, h: SSAValue, first: int, count: int) -> Value:
        """The state of all batch entries in 8 bits by its own range, times all weights."""
        total = _product(self.cx, h, self.r, self.scale, self.zero)
        return total if self.bias is None else self.cx.b.add(total, self.bias)


def _product(cx: Cx, x: Value, weights: Value, scale: Value, zero: Value) -> Value:
    """x [..., K] by weights [N, K] of integers."""
    held, x_scale, x_zero = dynamically_quantized(cx, x)
    turned = cx.b.transpose(weights, perm=(1, 0))
    return matmul_integer_to_float(cx, held, turned, x_scale, scale, x_zero, zero)


@onnx_op("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(
    cx: Cx,
    x: Value,
    w: Value,
    r: Value,
    bias: Value = None,
    lengths: Value = None,
    initial_h: Value = None,
    initial_c: Value = None,
    peepholes: Value = None,
    w_scale: Value = None,
    w_zero: Value = None,
    r_scale: Value = None,
    r_zero: Value = None,
    *,
    activation_alpha: Floats = (),
    activation_beta: Floats = (),
    activations: Strings = ("Sigmoid", "Tanh", "Tanh") * 2,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Value, ...]:
    """ONNX's LSTM; weights are [D, I, 4 * H] and [D, H, 4 * H], scales [D] or [D, 4 * H]."""
    if None in (w_scale, w_zero, r_scale, r_zero):
        cx.bad("a scale or a zero point of the weights is missing")
    reverse = directions(cx, direction)
    w, r = (cx.b.transpose(v, perm=(0, 2, 1)) for v in (w, r))

    def project(x: Value, weights: Value, d: int) -> Value:
        scale, zero = (step_of(cx, v, 0, d) for v in (w_scale, w_zero))
        return _product(cx, x, weights, scale, zero)

    layer = Layer(x, w, r, bias, lengths, [initial_h, initial_c], 0, reverse, project)
    functions = activations_for(cx, activations, activation_alpha, activation_beta, 3, len(reverse))

    def make(d: int, r: Value, bias: Value) -> Step:
        own = None if peepholes is None else step_of(cx, peepholes, 0, d)
        scale, zero = (step_of(cx, v, 0, d) for v in (r_scale, r_zero))
        return _Quantised(cx, r, bias, functions[d], clip, input_forget, own, scale, zero).step

    return run_layer(cx, layer, make)
