"""The reference interpreter: a graph's meaning in numpy, one primitive at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from cuvil.errors import RuntimeFailure, ShapeMismatchError
from cuvil.ir.attrs import Attrs, read_attrs
from cuvil.ir.build import constant_array, location_name
from cuvil.ir.dims import evaluate
from cuvil.ir.graph import Graph
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import of, tensor_type
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.bind import bind_symbols
from cuvil.ops.string_meaning import as_texts

Array = np.ndarray[Any, Any]
Env = Mapping[str, int]


def run(
    graph: Graph, feeds: Mapping[str, Array], until: Operation | None = None
) -> dict[str, Array]:
    """The graph's outputs for these inputs, by name.

    until: stop before this op of the graph's body and return nothing; see `trace` to look inside.
    Raises InputError (a name), DTypeError, ShapeMismatchError for wrong feeds, RuntimeFailure
    naming the op where a primitive cannot compute (an index outside its axis).
    """
    state = _start(graph, feeds)
    for op in graph.block.ops:
        if op is until:
            return {}
        if op.name == "cuvil.return":
            return dict(zip(graph.output_names, state.read(op), strict=True))
        state.step(op)
    raise ValueError(f"graph {graph.name} does not end with cuvil.return")


def trace(
    graph: Graph, feeds: Mapping[str, Array]
) -> Iterator[tuple[Operation, tuple[Array, ...]]]:
    """Every op of the graph's own body with its results, in order; nested regions stay closed."""
    state = _start(graph, feeds)
    for op in graph.block.ops:
        if op.name != "cuvil.return":
            yield op, state.step(op)


def evaluate_op(
    op: Operation, arrays: Sequence[Array], env: Env, pool: Pool | None = None
) -> tuple[Array, ...]:
    """The results of one op without regions on these operands.

    env: the values of the symbols in its attributes. A constant needs the pool. Results are
    checked against the op's types: a difference is a fault of the record.
    """
    record = of(op)
    if record.name == "constant":
        return (constant_array(op, pool or Pool()),)
    if record.evaluate is None:
        raise RuntimeFailure(f"{_named(op)} cannot be evaluated by itself")
    try:
        attrs = _known_attrs(op, env)
        with np.errstate(all="ignore"):
            results = tuple(np.asarray(r) for r in record.evaluate(list(arrays), attrs))
    except (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError) as error:
        raise RuntimeFailure(f"{_named(op)}: {error}") from error
    _check_results(op, results, env)
    return results


def _named(op: Operation) -> str:
    origin = location_name(op)
    return op.name if origin == op.name else f"{op.name} of {origin}"


def _known_attrs(op: Operation, env: Env) -> Attrs:
    """The attributes with every dim as a number."""
    schema = of(op).attrs
    attrs = read_attrs(schema, op.properties)
    for name, attr in schema.items():
        value = getattr(attrs, name)
        if attr.kind == "dims" and value is not None:
            setattr(attrs, name, tuple(evaluate(d, env) for d in value))
        elif attr.kind == "dim" and value is not None:
            setattr(attrs, name, evaluate(value, env))
    return attrs


def _check_results(op: Operation, results: Sequence[Array], env: Env) -> None:
    expected = [_known_type(tensor_type(r), env) for r in op.results]
    got = [(r.shape, r.dtype) for r in results]
    if got != expected:
        raise RuntimeFailure(
            f"{_named(op)} gave {', '.join(f'{list(s)} {d}' for s, d in got)}, "
            f"but its type says {shapes([tensor_type(r) for r in op.results])}"
        )


def _known_type(kind: TensorType, env: Env) -> tuple[tuple[int, ...], Any]:
    return tuple(evaluate(d, env) for d in kind.dims), kind.dtype.numpy


class _State:
    """Values and symbols known so far."""

    def __init__(self, pool: Pool, env: dict[str, int], values: dict[Value, Array]) -> None:
        self.pool = pool
        self.env = env
        self.values = values

    def read(self, op: Operation) -> tuple[Array, ...]:
        return tuple(self.values[v] for v in op.operands)

    def step(self, op: Operation) -> tuple[Array, ...]:
        """Runs one op; keeps and returns its results."""
        operands = self.read(op)
        if op.name == "cuvil.if":
            chosen = op.regions[0] if bool(operands[0]) else op.regions[1]
            results = self.region(chosen.block, (), self.env)
        elif op.name == "cuvil.loop":
            results = self.loop(op, operands)
        elif op.name == "cuvil.bind":
            results = self.bind(op, operands[0])
        elif op.name == "cuvil.require":
            results = self.require(op)
        else:
            results = evaluate_op(op, operands, self.env, self.pool)
        self.values.update(zip(op.results, results, strict=True))
        return results

    def bind(self, op: Operation, operand: Array) -> tuple[Array, ...]:
        attrs, value = read_attrs(of(op).attrs, op.properties), int(operand.reshape(()))
        most = value if attrs.most is None else evaluate(attrs.most, self.env)
        if not attrs.least <= value <= most:
            raise ShapeMismatchError(
                f"{_named(op)}: the extent {attrs.symbol} is {value}, outside of "
                f"{attrs.least} to {most}"
            )
        self.env[attrs.symbol] = value
        return ()

    def require(self, op: Operation) -> tuple[Array, ...]:
        attrs = read_attrs(of(op).attrs, op.properties)
        left, right = evaluate(attrs.left, self.env), evaluate(attrs.right, self.env)
        if left != right:
            raise ShapeMismatchError(
                f"{_named(op)}: {attrs.left} is {left}, but {attrs.right} is {right}"
            )
        return ()

    def region(self, block: Block, args: Sequence[Array], env: Env) -> tuple[Array, ...]:
        """What a region yields; it sees this state's values."""
        inner = _State(self.pool, dict(env), self.values)
        inner.values.update(zip(block.args, args, strict=True))
        for op in block.ops:
            if op.name == "cuvil.yield":
                return inner.read(op)
            inner.step(op)
        raise ValueError("a region must end with cuvil.yield")

    def loop(self, op: Operation, carried: tuple[Array, ...]) -> tuple[Array, ...]:
        attrs = read_attrs(of(op).attrs, op.properties)
        stacks: list[list[Array]] = [[] for _ in op.results[len(carried) :]]
        last = None if attrs.trip is None else evaluate(attrs.trip, self.env)
        for number in count():
            if (last is not None and number >= last) or (attrs.early and not carried[0]):
                break
            env = {**self.env, attrs.symbol: number}
            yielded = self.region(op.regions[0].block, carried, env)
            carried = yielded[: len(carried)]
            for stack, value in zip(stacks, yielded[len(carried) :], strict=True):
                stack.append(value)
        scanned = op.results[len(carried) :]
        return (*carried, *(self.stack(s, v) for s, v in zip(stacks, scanned, strict=True)))

    def stack(self, parts: list[Array], result: Value) -> Array:
        if parts:
            return np.stack(parts)
        kind = tensor_type(result)
        return np.zeros([0, *(evaluate(d, self.env) for d in kind.dims[1:])], kind.dtype.numpy)


def _start(graph: Graph, feeds: Mapping[str, Array]) -> _State:
    types = {n: tensor_type(v) for n, v in zip(graph.input_names, graph.inputs, strict=True)}
    feeds = {name: as_texts(np.asarray(value)) for name, value in feeds.items()}
    env = bind_symbols(types, feeds)
    values = {
        value: feeds[name] for name, value in zip(graph.input_names, graph.inputs, strict=True)
    }
    return _State(graph.pool, env, values)
