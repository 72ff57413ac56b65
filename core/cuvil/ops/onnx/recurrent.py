"""RNN, GRU and LSTM: what one step computes; `recurrent_loop` does the rest.

Before opset 7 `output_sequence` said whether the node gives Y; that it names Y says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim
from cuvil.ir.names import Value as SSAValue
from cuvil.ops.onnx.activations_table import Activation, activations_for
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.control import step_of
from cuvil.ops.onnx.recurrent_loop import Layer, State, Step, directions, part, run_layer
from cuvil.ops.onnx.registry import onnx_op

Floats = tuple[float, ...]
Strings = tuple[str, ...]


@dataclass(frozen=True)
class _Cell:
    """One direction: recurrent weights and bias, activation functions, clip threshold."""

    cx: Cx
    r: Value
    bias: Value
    functions: Sequence[Activation]
    clip: float | None

    @property
    def size(self) -> Dim:
        return self.cx.dims(self.r)[1]

    def clipped(self, x: Value) -> Value:
        """x within +-clip, which bounds what goes into activations."""
        b = self.cx.b
        if self.clip is None:
            return x
        return b.min(b.max(x, b.scalar(-self.clip, x)), b.scalar(self.clip, x))

    def product(self, h: SSAValue, first: int, count: int) -> Value:
        """h times the recurrent weights of some gates, plus their bias."""
        cx, size = self.cx, self.size
        whole = cx.dims(self.r)[0] == size * count
        r = self.r if whole else part(cx, self.r, 0, size * first, size * count)
        total = cx.b.contract(h, r, spec="bh,gh->bg")
        if self.bias is None:
            return total
        bias = self.bias if whole else part(cx, self.bias, 0, size * first, size * count)
        return cx.b.add(total, bias)


@dataclass(frozen=True)
class _Rnn(_Cell):
    def step(self, projected: SSAValue, state: State) -> State:
        total = self.cx.b.add(projected, self.product(state[0], 0, 1))
        return (self.functions[0](self.cx, self.clipped(total)),)


@dataclass(frozen=True)
class _Gru(_Cell):
    linear_before_reset: int

    def step(self, projected: SSAValue, state: State) -> State:
        cx, b, size, (h,) = self.cx, self.cx.b, self.size, state
        f, g = self.functions
        gates = b.add(part(cx, projected, 1, 0, size * 2), self.product(h, 0, 2))
        gates = f(cx, self.clipped(gates))
        update, reset = part(cx, gates, 1, 0, size), part(cx, gates, 1, size, size)
        if self.linear_before_reset:
            mixed = b.mul(reset, self.product(h, 2, 1))
        else:
            mixed = self.product(b.mul(reset, h), 2, 1)
        new = g(cx, self.clipped(b.add(part(cx, projected, 1, size * 2, size), mixed)))
        keep = b.sub(b.scalar(1, update), update)
        return (b.add(b.mul(keep, new), b.mul(update, h)),)


@dataclass(frozen=True)
class Lstm(_Cell):
    """A direction of an LSTM."""

    input_forget: int
    peepholes: Value

    def gate(self, total: Value, k: int, cell: Value = None, peephole: int = 0) -> Value:
        """Gate k (of i, o, f, c) before its activation; peepholes are kept as i, o, f."""
        cx = self.cx
        value = part(cx, total, 1, self.size * k, self.size)
        if self.peepholes is not None and cell is not None:
            weight = part(cx, self.peepholes, 0, self.size * peephole, self.size)
            value = cx.b.add(value, cx.b.mul(weight, cell))
        return self.clipped(value)

    def step(self, projected: SSAValue, state: State) -> State:
        cx, b, (hidden, cell) = self.cx, self.cx.b, state
        f, g, h = self.functions
        total = b.add(projected, self.product(hidden, 0, 4))
        i = f(cx, self.gate(total, 0, cell, 0))
        if self.input_forget:
            forget = b.sub(b.scalar(1, i), i)
        else:
            forget = f(cx, self.gate(total, 2, cell, 2))
        new = b.add(b.mul(forget, cell), b.mul(i, g(cx, self.gate(total, 3))))
        o = f(cx, self.gate(total, 1, new, 1))
        return b.mul(o, h(cx, new)), new


@onnx_op("RNN")
def rnn(
    cx: Cx,
    x: Value,
    w: Value,
    r: Value,
    bias: Value = None,
    lengths: Value = None,
    initial_h: Value = None,
    *,
    activation_alpha: Floats = (),
    activation_beta: Floats = (),
    activations: Strings = ("Tanh",) * 2,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Value, ...]:
    """h' = f(x W + h R + biases)."""
    reverse = directions(cx, direction)
    layer = Layer(x, w, r, bias, lengths, [initial_h], layout, reverse)
    functions = activations_for(cx, activations, activation_alpha, activation_beta, 1, len(reverse))
    return run_layer(cx, layer, lambda d, r, b: _Rnn(cx, r, b, functions[d], clip).step)


@onnx_op("GRU")
def gru(
    cx: Cx,
    x: Value,
    w: Value,
    r: Value,
    bias: Value = None,
    lengths: Value = None,
    initial_h: Value = None,
    *,
    activation_alpha: Floats = (),
    activation_beta: Floats = (),
    activations: Strings = ("Sigmoid", "Tanh") * 2,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
) -> tuple[Value, ...]:
    """Gates z (update), r (reset) and h (candidate): h' = (1 - z) * candidate + z * h."""
    reverse = directions(cx, direction)
    layer = Layer(x, w, r, bias, lengths, [initial_h], layout, reverse)
    functions = activations_for(cx, activations, activation_alpha, activation_beta, 2, len(reverse))

    def make(d: int, r: Value, bias: Value) -> Step:
        return _Gru(cx, r, bias, functions[d], clip, linear_before_reset).step

    return run_layer(cx, layer, make)


@onnx_op("LSTM")
def lstm(
    cx: Cx,
    x: Value,
    w: Value,
    r: Value,
    bias: Value = None,
    lengths: Value = None,
    initial_h: Value = None,
    initial_c: Value = None,
    peepholes: Value = None,
    *,
    activation_alpha: Floats = (),
    activation_beta: Floats = (),
    activations: Strings = ("Sigmoid", "Tanh", "Tanh") * 2,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Value, ...]:
    """Gates i, o, f and c: cell' = f * cell + i * c, h' = o * h(cell')."""
    reverse = directions(cx, direction)
    layer = Layer(x, w, r, bias, lengths, [initial_h, initial_c], layout, reverse)
    functions = activations_for(cx, activations, activation_alpha, activation_beta, 3, len(reverse))

    def make(d: int, r: Value, bias: Value) -> Step:
        own = None if peepholes is None else step_of(cx, peepholes, 0, d)
        return Lstm(cx, r, bias, functions[d], clip, input_forget, own).step

    return run_layer(cx, layer, make)
