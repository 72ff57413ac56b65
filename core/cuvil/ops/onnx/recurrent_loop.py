"""What RNN, GRU and LSTM share: projection of all steps by one product, and the loop over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim
from cuvil.ir.names import Value as SSAValue
from cuvil.ops.control import loop_types
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.control import flipped, step_of

__all__ = ["Layer", "State", "Step", "directions", "part", "run_layer"]

State = tuple[SSAValue, ...]
# One step: (projected input of the step, state) -> next state, whose first part is the output.
Step = Callable[[SSAValue, State], State]
# (direction, its recurrent weights, its recurrent bias or None) -> the direction's step.
MakeStep = Callable[[int, Value, Value], Step]


@dataclass(frozen=True)
class Layer:
    """Operands of a recurrent operator as ONNX gives them; layout=1 has the batch axis first.

    x [S, B, I], w [D, G*H, I], r [D, G*H, H], bias [D, 2*G*H], lengths [B], initial [D, B, H].
    project(x, w, direction) gives the product [S, B, G*H] of all steps, where it is no plain one.
    """

    x: Value
    w: Value
    r: Value
    bias: Value
    lengths: Value
    initial: Sequence[Value]
    layout: int
    reverse: Sequence[bool]
    project: Callable[[Value, Value, int], Value] | None = None


def directions(cx: Cx, direction: str) -> list[bool]:
    """For each direction whether it runs backwards."""
    known = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if direction not in known:
        cx.bad(f"direction={direction!r} is not one of {', '.join(known)}")
    return known[direction]


def part(cx: Cx, x: Value, axis: int, first: Dim, count: Dim) -> Value:
    """Elements first .. first + count - 1 of an axis."""
    dims = list(cx.dims(x))
    starts: list[Dim] = [first if k == axis else 0 for k in range(len(dims))]
    out = [count if k == axis else d for k, d in enumerate(dims)]
    return cx.b.slice(x, starts=starts, steps=[1] * len(dims), dims=out)


def run_layer(cx: Cx, layer: Layer, make_step: MakeStep) -> tuple[Value, ...]:
    """The node's outputs: Y [S, D, B, H], then the final states, each [D, B, H]."""
    if [cx.type(v).rank for v in (layer.x, layer.w, layer.r)] != [3, 3, 3]:
        cx.bad("X, W and R must have rank 3")
    x = _swapped(cx, layer.x, layer.layout)
    outputs, finals = [], []
    for d, backwards in enumerate(layer.reverse):
        y, state = _run_direction(cx, layer, x, d, backwards, make_step)
        outputs.append(cx.b.reshape(y, dims=(cx.dims(y)[0], 1, *cx.dims(y)[1:])))
        finals.append(state)
    y = _joined(cx, outputs, 1)
    if layer.layout:
        y = cx.b.transpose(y, perm=(2, 0, 1, 3))
    states = [_stacked(cx, parts) for parts in zip(*finals, strict=True)]
    return y, *(_swapped(cx, v, layer.layout) for v in states)


def _swapped(cx: Cx, x: Value, layout: int) -> Value:
    if x is None or not layout:
        return x
    return cx.b.transpose(x, perm=[1, 0, *range(2, cx.type(x).rank)])


def _joined(cx: Cx, parts: Sequence[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else cx.b.concat(*parts, axis=axis)


def _stacked(cx: Cx, parts: Sequence[Value]) -> Value:
    return _joined(cx, [cx.b.reshape(p, dims=(1, *cx.dims(p))) for p in parts], 0)


def _run_direction(
    cx: Cx, layer: Layer, x: Value, d: int, backwards: bool, make_step: MakeStep
) -> tuple[Value, State]:
    """(outputs [S, B, H], final state) of one direction."""
    w, r = step_of(cx, layer.w, 0, d), step_of(cx, layer.r, 0, d)
    (width, hidden), (steps, batch, _) = cx.dims(r), cx.dims(x)
    if layer.project is None:
        projected = cx.b.contract(x, w, spec="sbi,gi->sbg")
    else:
        projected = layer.project(x, w, d)
    recurrent = None
    if layer.bias is not None:
        bias = step_of(cx, layer.bias, 0, d)
        projected = cx.b.add(projected, part(cx, bias, 0, 0, width))
        recurrent = part(cx, bias, 0, width, width)
    step = make_step(d, r, recurrent)
    zero = cx.b.broadcast(cx.b.scalar(0, x), dims=(batch, hidden))
    given = [_swapped(cx, v, layer.layout) for v in layer.initial]
    state = tuple(zero if v is None else step_of(cx, v, 0, d) for v in given)
    if steps == 1 and layer.lengths is None:
        state = step(cx.b.reshape(projected, dims=(batch, width)), state)
        return cx.b.reshape(state[0], dims=(1, batch, hidden)), state
    return _loop(cx, projected, state, backwards, layer.lengths, step)


def _loop(
    cx: Cx, projected: Value, state: State, backwards: bool, lengths: Value, step: Step
) -> tuple[Value, State]:
    steps, batch, _ = cx.dims(projected)
    counter = cx.new_symbol("step")
    at = steps - 1 - counter if backwards else counter

    def body(*values: SSAValue) -> Sequence[SSAValue]:
        after = step(step_of(cx, projected, 0, at), values)
        if lengths is None:
            return *after, after[0]
        # Beyond its length an entry keeps its state and puts out zeros.
        position = cx.b.dims(dims=(at,), shape=(), dtype="i64")
        inside = cx.b.lt(position, cx.b.cast(lengths, to="i64"))
        inside = cx.b.reshape(inside, dims=(batch, 1))
        kept = [cx.b.select(inside, a, v) for a, v in zip(after, values, strict=True)]
        return *kept, cx.b.select(inside, after[0], cx.b.scalar(0, after[0]))

    carried = [cx.type(v) for v in state]
    region, yields = cx.region(carried, body)
    types = loop_types(carried, yields[len(carried) :], steps)
    options = {"trip": steps, "symbol": str(counter)}
    *final, stack = cx.b.emit_regions("loop", state, types, [region], **options)
    return flipped(cx, stack, 0) if backwards else stack, tuple(final)
