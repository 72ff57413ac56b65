"""Control flow: a choice of subgraphs, loops, and scans along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from cuvil.ir.dims import Dim, SymDim, known_equal
from cuvil.ir.names import Value as SSAValue
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.control import loop_types
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.helpers import axis_in
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]
MOST_IDLE_STEPS = 100_000


@onnx_op("If")
def if_(cx: Cx, condition: Value, *, then_branch: Any, else_branch: Any) -> tuple[Value, ...]:
    """One of two subgraphs; a condition known at compile time leaves only its branch.

    Where shapes alone decide and the branches differ in rank, exporters have wrapped a Squeeze
    (`If(extent == 1, Squeeze, Identity)`): the first branch is what the model means, and its
    reshape fails a run whose extent is another.
    """
    known = cx.known(condition)
    if known is not None and known.size == 1:
        return cx.inline(then_branch if known.ravel()[0] else else_branch)
    bodies = (then_branch, else_branch)
    branches = cx.branches(*(partial(cx.inline, body) for body in bodies))
    regions, types = zip(*branches, strict=True)
    if [t.rank for t in types[0]] != [t.rank for t in types[1]] and not cx.inputs_of(condition):
        for region in regions:
            cx.discard(region)
        return cx.inline(then_branch)
    scalar = condition if cx.type(condition).rank == 0 else cx.b.reshape(condition, dims=())
    return cx.b.emit_regions("if", [scalar], common_types(cx, *types), list(regions))


def common_types(
    cx: Cx, a: Sequence[TensorType], b: Sequence[TensorType], what: str = "the branches"
) -> list[TensorType]:
    """Types that hold for both; UnsupportedError where they differ."""
    if len(a) != len(b):
        cx.bad(f"{what} give {len(a)} and {len(b)} outputs")
    for x, y in zip(a, b, strict=True):
        same = x.rank == y.rank and all(map(known_equal, x.dims, y.dims))
        if x.dtype != y.dtype or not same:
            cx.fail(f"{what} give values of different types: {shapes([x])} and {shapes([y])}")
    return list(a)


@onnx_op("Loop")
def loop(
    cx: Cx, trip: Value = None, condition: Value = None, *initial: Value, body: Any
) -> tuple[Value, ...]:
    """At most `trip` times, while the condition holds; carried values, then stacked outputs."""
    if trip is None:
        cx.fail("a loop without a trip count is not supported")
    counter = cx.new_symbol("step")
    count = cx.known_ints(trip, "the trip count")[0]
    first = cx.b.scalar(True, "bool") if condition is None else cx.b.reshape(condition, dims=())
    known = cx.known(first)
    count = 0 if known is not None and not known else count
    carried = [cx.type(v) for v in initial]
    conditions: list[Value] = [first]

    def plain(*values: SSAValue) -> Sequence[SSAValue]:
        goes_on, *after = cx.inline(body, _step(cx, counter), cx.b.scalar(True, "bool"), *values)
        conditions.append(goes_on)
        return after

    region, yields = cx.region(carried, plain)
    if not all(_holds(cx, c) for c in conditions) and count != 0:
        cx.discard(region)
        return _while(cx, count, counter, first, initial, body, len(yields) - len(carried))
    after = common_types(cx, carried, yields[: len(carried)], "two iterations")
    types = loop_types(after, yields[len(carried) :], count)
    return cx.b.emit_regions("loop", initial, types, [region], trip=count, symbol=str(counter))


def _holds(cx: Cx, condition: Value) -> bool:
    known = cx.known(condition)
    return known is not None and bool(known.all())


def _while(
    cx: Cx,
    count: Dim,
    counter: SymDim,
    first: Value,
    initial: Sequence[Value],
    body: Any,
    stacked: int,
) -> tuple[Value, ...]:
    """A loop that data can end: all iterations are counted, those after the end do nothing."""
    if stacked:
        cx.fail("stacked outputs of a loop that data can end early are not supported")
    if isinstance(count, int) and count > MOST_IDLE_STEPS:
        cx.fail(f"a loop that data ends needs a trip count of at most {MOST_IDLE_STEPS}")

    def step(alive: SSAValue, *values: SSAValue) -> Sequence[SSAValue]:
        def run() -> Sequence[SSAValue]:
            after = cx.inline(body, _step(cx, counter), cx.b.scalar(True, "bool"), *values)
            return cx.b.reshape(after[0], dims=()), *after[1:]

        branches = cx.branches(run, lambda: (alive, *values))
        regions, types = zip(*branches, strict=True)
        return cx.b.emit_regions("if", [alive], common_types(cx, *types), list(regions))

    state = [first, *initial]
    carried = [cx.type(v) for v in state]
    region, yields = cx.region(carried, step)
    types = common_types(cx, carried, yields, "two iterations")
    options = {"trip": count, "symbol": str(counter)}
    return cx.b.emit_regions("loop", state, types, [region], **options)[1:]


def _step(cx: Cx, counter: Dim) -> Value:
    return cx.b.dims(dims=(counter,), shape=(), dtype="i64")


@onnx_op("Scan", since=9)
def scan(
    cx: Cx,
    *values: Value,
    body: Any,
    num_scan_inputs: int,
    scan_input_axes: Ints = (),
    scan_input_directions: Ints = (),
    scan_output_axes: Ints = (),
    scan_output_directions: Ints = (),
) -> tuple[Value, ...]:
    """The body on every slice of the scanned inputs; its outputs are stacked."""
    states, scanned = _scan_operands(cx, values, num_scan_inputs)
    given = scan_input_axes or (0,) * len(scanned)
    axes = [axis_in(cx, a, cx.type(v).rank) for a, v in zip(given, scanned, strict=True)]
    results = _scanned(cx, body, states, scanned, axes, scan_input_directions)
    stacked = results[len(states) :]
    ends = scan_output_axes or (0,) * len(stacked)
    turned = scan_output_directions or (0,) * len(stacked)
    placed = [_placed(cx, v, a, t) for v, a, t in zip(stacked, ends, turned, strict=True)]
    return (*results[: len(states)], *placed)


def _scan_operands(cx: Cx, values: Sequence[Value], count: int) -> tuple[list[Value], list[Value]]:
    """(initial states, scanned inputs); the last `count` operands are scanned."""
    if not 1 <= count <= len(values):
        cx.bad(f"{count} scan inputs of {len(values)}")
    return list(values[: len(values) - count]), list(values[len(values) - count :])


def _scanned(
    cx: Cx,
    body: Any,
    states: Sequence[SSAValue],
    scanned: Sequence[SSAValue],
    axes: Sequence[int],
    directions: Ints = (),
) -> tuple[Value, ...]:
    """Final states, then stacks of the other outputs in the order of the steps."""
    counter, count = cx.new_symbol("step"), cx.dims(scanned[0])[axes[0]]
    back = directions or (0,) * len(scanned)

    def step(*carried: SSAValue) -> Sequence[SSAValue]:
        at = [count - 1 - counter if b else counter for b in back]
        slices = [step_of(cx, v, a, i) for v, a, i in zip(scanned, axes, at, strict=True)]
        return cx.inline(body, *carried, *slices)

    carried = [cx.type(v) for v in states]
    region, yields = cx.region(carried, step)
    after = common_types(cx, carried, yields[: len(carried)], "two iterations")
    types = loop_types(after, yields[len(carried) :], count)
    return cx.b.emit_regions("loop", states, types, [region], trip=count, symbol=str(counter))


@onnx_op("Scan", since=8)
def scan_batches(
    cx: Cx,
    lengths: Value = None,
    *values: Value,
    body: Any,
    num_scan_inputs: int,
    directions: Ints = (),
) -> tuple[Value, ...]:
    """Before opset 9 every input has a batch axis first; entries are scanned one by one."""
    if lengths is not None:
        cx.fail("sequence_lens is not supported")
    states = len(_scan_operands(cx, values, num_scan_inputs)[0])
    counter = cx.new_symbol("entry")

    def entry() -> Sequence[SSAValue]:
        own = [step_of(cx, v, 0, counter) for v in values]
        axes = [0] * num_scan_inputs
        return _scanned(cx, body, own[:states], own[states:], axes, directions)

    region, yields = cx.region((), entry)
    count = cx.dims(values[0])[0]
    types = loop_types((), yields, count)
    return cx.b.emit_regions("loop", (), types, [region], trip=count, symbol=str(counter))


def step_of(cx: Cx, x: Value, axis: int, at: Dim) -> Value:
    """The slice of x at a position of an axis, without that axis."""
    dims = list(cx.dims(x))
    starts: list[Dim] = [at if k == axis else 0 for k in range(len(dims))]
    one = [1 if k == axis else d for k, d in enumerate(dims)]
    part = cx.b.slice(x, starts=starts, steps=[1] * len(dims), dims=one)
    return cx.b.reshape(part, dims=dims[:axis] + dims[axis + 1 :])


def flipped(cx: Cx, x: Value, axis: int) -> Value:
    """x with an axis in reverse order."""
    dims = cx.dims(x)
    starts: list[Dim] = [d - 1 if k == axis else 0 for k, d in enumerate(dims)]
    steps = [-1 if k == axis else 1 for k in range(len(dims))]
    return cx.b.slice(x, starts=starts, steps=steps, dims=dims)


def _placed(cx: Cx, x: Value, axis: int, backwards: int) -> Value:
    """A stack with its steps along `axis`, in reverse order if asked."""
    rank = cx.type(x).rank
    at = axis_in(cx, axis, rank)
    value = flipped(cx, x, 0) if backwards else x
    order = [*range(1, rank)]
    order.insert(at, 0)
    return value if at == 0 else cx.b.transpose(value, perm=order)
