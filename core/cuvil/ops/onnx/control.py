"""Control flow: a choice of subgraphs, loops, and scans along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from cuvil.ir.dims import Dim, dim_max, known_equal
from cuvil.ir.names import Region
from cuvil.ir.names import Value as SSAValue
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.compose.helpers import axis_in
from cuvil.ops.control import loop_types
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import as_value
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]


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
    found: list[list[int | None]] = []

    def flat(body: Any) -> Sequence[Value]:
        values, lengths = _flattened(cx.inline(body))
        found.append(lengths)
        return values

    bodies = (then_branch, else_branch)
    regions, types = zip(*cx.branches(*(partial(flat, body) for body in bodies)), strict=True)
    if found[0] != found[1]:
        for region in regions:
            cx.discard(region)
        cx.needs(condition, "the length of a sequence")
    if [t.rank for t in types[0]] != [t.rank for t in types[1]]:
        for region in regions:
            cx.discard(region)
        if cx.inputs_of(condition):
            cx.needs(condition, "the rank of an output")
        return cx.inline(then_branch)
    scalar = condition if cx.type(condition).rank == 0 else cx.b.reshape(condition, dims=())
    return _grouped(_chosen(cx, scalar, regions, types), found[0])


def _flattened(values: Sequence[Value]) -> tuple[list[Value], list[int | None]]:
    """All tensors, and how many each value is: a number for a sequence, None for a tensor."""
    parts = [list(v) if isinstance(v, list) else [v] for v in values]
    lengths = [len(v) if isinstance(v, list) else None for v in values]
    return [v for part in parts for v in part], lengths


def _grouped(values: Sequence[Value], lengths: Sequence[int | None]) -> tuple[Value, ...]:
    rest = iter(values)
    return tuple(next(rest) if n is None else [next(rest) for _ in range(n)] for n in lengths)


def _chosen(
    cx: Cx, condition: Value, regions: Sequence[Region], types: Sequence[Sequence[TensorType]]
) -> tuple[Value, ...]:
    """The results of two regions; extents in which they differ are found by the run."""
    results, found, given = [], [], ([], [])  # type: ignore[var-annotated]
    for then, orelse in zip(*types, strict=True):
        check_alike(cx, then, orelse, "the branches")
        dims: list[Dim] = []
        for a, b in zip(then.dims, orelse.dims, strict=True):
            if known_equal(a, b) and not cx.inner(a):
                dims.append(a)
                continue
            tops = cx.upper(a), cx.upper(b)
            found.append(cx.new_bounded("chosen", None if None in tops else dim_max(*tops)))  # type: ignore[arg-type]
            dims.append(found[-1])
            given[0].append(a)
            given[1].append(b)
        results.append(then.with_dims(dims))
    for region, dims in zip(regions, given, strict=True):
        cx.extend(region, partial(_values, cx, dims))
    results += [TensorType.of((), "i64")] * len(found)
    values = cx.b.emit_regions("if", [condition], results, list(regions))
    for symbol, value in zip(found, values[len(values) - len(found) :], strict=True):
        cx.bind_to(value, symbol)
    return values[: len(values) - len(found)]


def _values(cx: Cx, dims: Sequence[Dim]) -> list[Value]:
    return [as_value(cx, d) for d in dims]


def check_alike(cx: Cx, a: TensorType, b: TensorType, what: str) -> None:
    """UnsupportedError where two types differ in more than their extents."""
    if a.dtype != b.dtype or a.rank != b.rank:
        cx.fail(f"{what} give values of different types: {shapes([a])} and {shapes([b])}")


def common_types(
    cx: Cx, a: Sequence[TensorType], b: Sequence[TensorType], what: str = "the branches"
) -> list[TensorType]:
    """Types that hold for both; UnsupportedError where they differ."""
    if len(a) != len(b):
        cx.bad(f"{what} give {len(a)} and {len(b)} outputs")
    for x, y in zip(a, b, strict=True):
        check_alike(cx, x, y, what)
        if not all(map(known_equal, x.dims, y.dims)):
            cx.fail(f"{what} give values of different types: {shapes([x])} and {shapes([y])}")
    return list(a)


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
    length: Value = None,
) -> tuple[Value, ...]:
    """Final states, then stacks of the other outputs in the order of the steps.

    length: how many steps count, an integer scalar; by default all.
    """
    count = cx.dims(scanned[0])[axes[0]]
    counter = cx.new_bounded("step", count - 1)
    back = directions or (0,) * len(scanned)

    def step(*carried: SSAValue) -> Sequence[SSAValue]:
        at = [count - 1 - counter if b else counter for b in back]
        slices = [step_of(cx, v, a, i) for v, a, i in zip(scanned, axes, at, strict=True)]
        after = cx.inline(body, *carried, *slices)
        return after if length is None else _while_inside(cx, counter, length, carried, after)

    carried = [cx.type(v) for v in states]
    region, yields = cx.region(carried, step)
    cx.close(counter)
    for kind in yields:
        if any(map(cx.inner, kind.dims)):
            cx.fail("a step gives an extent that only it knows")
    after = common_types(cx, carried, yields[: len(carried)], "two iterations")
    types = loop_types(after, yields[len(carried) :], count)
    return cx.b.emit_regions("loop", states, types, [region], trip=count, symbol=str(counter))


def _while_inside(
    cx: Cx, counter: Dim, length: Value, before: Sequence[Value], after: Sequence[Value]
) -> list[Value]:
    """States and outputs of a step: what they were, and zeros, from step `length` on."""
    inside = cx.b.lt(as_value(cx, counter), cx.b.cast(length, to="i64"))
    rest = [*before, *(cx.b.scalar(0, v) for v in after[len(before) :])]
    return [cx.b.select(inside, a, r) for a, r in zip(after, rest, strict=True)]


@onnx_op("Scan", since=8)
def scan_batches(
    cx: Cx,
    lengths: Value = None,
    *values: Value,
    body: Any,
    num_scan_inputs: int,
    directions: Ints = (),
) -> tuple[Value, ...]:
    """Before opset 9 every input has a batch axis first; entries are scanned one by one.

    Beyond its length an entry keeps its states and puts out zeros.
    """
    if lengths is not None and any(directions):
        cx.fail("sequence_lens with a backward direction is not supported")
    states = len(_scan_operands(cx, values, num_scan_inputs)[0])
    counter = cx.new_symbol("entry")

    def entry() -> Sequence[SSAValue]:
        own = [step_of(cx, v, 0, counter) for v in values]
        axes = [0] * num_scan_inputs
        length = None if lengths is None else step_of(cx, lengths, 0, counter)
        return _scanned(cx, body, own[:states], own[states:], axes, directions, length)

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
