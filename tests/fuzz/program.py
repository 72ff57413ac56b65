"""Random tensor programs: what exists so far, with its value, so that every step fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import cuvil.ops  # noqa: F401 - registers the primitives
from cuvil.errors import RuntimeFailure
from cuvil.ir.build import Builder
from cuvil.ir.dims import Dim, evaluate, symbol
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.names import Block, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.ops.interpreter import _State

Array = np.ndarray[Any, Any]
Env = Mapping[str, int]

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
LARGE = (1, 2, 3, 6, 15, 31, 48, 65, 100, 257)
FLOATS = ("f32", "f32", "f32", "f32", "f64", "f16", "bf16")
INTS = ("i64", "i32", "i8", "u8", "i16", "u16", "u32", "u64")
LIMITS = {"f16": 24.0, "bf16": 24.0, "f32": 1e3, "f64": 1e3}
MAX_SIZE = 6000  # elements of one tensor; ten times as many where extents are large


class Misfit(Exception):
    """A step that cannot be taken from here."""


class Program:
    """A graph that grows step by step.

    arrays: the value of everything so far for the first of `envs`. exact: values that compiled
    code must give bit by bit, so that comparing or rounding them is safe.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        envs: Sequence[Env],
        large: bool = False,
        indices: bool = False,
    ) -> None:
        self.rng = rng
        self.indices = indices  # integer inputs are small and not negative
        self.extents = LARGE if large else EXTENTS
        self.max_size = 10 * MAX_SIZE if large else MAX_SIZE
        self.envs = envs
        self.pool = Pool()
        self.graph: Graph | None = None
        self.b: Builder = None  # type: ignore[assignment]
        self.state = _State(self.pool, dict(envs[0]), {})
        self.pickable: list[Value] = []
        self.exact: set[Value] = set()
        self.depth = 0
        self.loops = 0
        self.found: dict[str, int] = {}  # extents that the run finds, for the first of `envs`

    # -- choices -------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int) -> int:
        """low <= n <= high."""
        return int(self.rng.integers(low, high + 1))

    def choice(self, items: Sequence[Any]) -> Any:
        if not len(items):
            raise Misfit
        return items[int(self.rng.integers(len(items)))]

    def extent(self) -> int:
        return 0 if self.chance(0.02) else int(self.choice(self.extents))

    # -- values --------------------------------------------------------------------------------
    def begin(self, inputs: Mapping[str, TensorType]) -> None:
        self.graph = new_graph("fuzz", inputs, self.pool)
        self.b = Builder(self.graph.block, self.pool)
        for value, array in zip(self.graph.inputs, self.feeds(0, 0).values(), strict=True):
            self.state.values[value] = array
            self.keep(value, exact=True)

    def feeds(self, env: int, seed: int) -> dict[str, Array]:
        """Inputs for the given environment."""
        assert self.graph is not None
        rng = np.random.default_rng(seed)
        found = {}
        for name, value in zip(self.graph.input_names, self.graph.inputs, strict=True):
            shape = [evaluate(d, self.envs[env]) for d in self.dims(value)]
            array = data(rng, shape, self.kind(value))
            small = self.indices and array.dtype.kind in "iu"
            found[name] = apart(array % 3 if small else array)
        return found

    def keep(self, value: Value, exact: bool) -> None:
        self.pickable.append(value)
        if exact:
            self.exact.add(value)

    def emit(self, name: str, *operands: Value, exact: bool = False, **attrs: Any) -> Value:
        """One primitive, evaluated at once. Misfit where types or values do not fit."""
        try:
            result = self.b.emit(name, operands, **attrs)
        except ValueError as error:
            raise Misfit from error
        first = result[0] if isinstance(result, tuple) else result
        self.settle(first.owner)
        if exact and all(v in self.exact or self.is_constant(v) for v in operands):
            self.exact.update(first.owner.results)
        return first

    def bind(self, count: Value, most: Dim | None) -> Dim:
        """A symbol for an extent that the run finds, from here on."""
        name = f"u{len(self.found)}"
        self.b.emit("bind", [count], symbol=name, most=most)
        op = self.b.point.block.last_op
        assert op is not None
        self.state.step(op)
        self.found[name] = self.state.env[name]
        return symbol(name)

    def adopt(self, build: Callable[..., Any], *operands: Value) -> None:
        """Takes over what a function makes with the builder, where tests can be made of it."""
        assert self.graph is not None
        before = set(self.graph.block.ops)
        build(self.b, *operands)
        made = [op for op in self.graph.block.ops if op not in before]
        try:
            for op in made:
                self.state.step(op)
        except RuntimeFailure as error:
            raise Misfit(str(error)) from error
        for op in made:
            for result in op.results:
                if not self.is_constant(result) and self._usable(self.array(result)):
                    self.keep(result, exact=False)

    def settle(self, op: Any) -> None:
        """Computes an op that was just built; drops it where no test can be made of its value."""
        try:
            results = self.state.step(op)
        except RuntimeFailure as error:
            op.detach()
            op.erase()
            raise Misfit(str(error)) from error
        fits = all(map(self._usable, results))
        sizes = [tensor_type(r).dims for r in op.results]
        for env in self.envs:
            extents = (
                [[evaluate(d, {**self.found, **env}) for d in dims] for dims in sizes]
                if self.depth == 0
                else []
            )
            fits = fits and all(min(e, default=1) >= 0 for e in extents)
            fits = fits and all(np.prod(e) <= self.max_size for e in extents)
        if not fits:
            op.detach()
            op.erase()
            raise Misfit

    def _usable(self, array: Array) -> bool:
        if array.size > self.max_size:
            return False
        kind = from_numpy(array.dtype)
        if not kind.is_float or array.size == 0:
            return True
        wide = array.astype(np.float64)
        return bool(np.isfinite(wide).all() and np.abs(wide).max() <= LIMITS[kind.name])

    def is_constant(self, value: Value) -> bool:
        return getattr(value.owner, "name", "") == "cuvil.constant"

    def array(self, value: Value) -> Array:
        return self.state.values[value]

    def dims(self, value: Value) -> tuple[Dim, ...]:
        return tensor_type(value).dims

    def kind(self, value: Value) -> str:
        return tensor_type(value).dtype.name

    def pick(self, fits: Callable[[TensorType], bool] = lambda t: True) -> Value:
        """A value so far, later ones more often."""
        found = [v for v in self.pickable if fits(tensor_type(v))]
        if len(found) > 6 and self.chance(0.6):
            found = found[-5:]
        return self.choice(found)

    def pick_exact(self, fits: Callable[[TensorType], bool] = lambda t: True) -> Value:
        return self.choice([v for v in self.pickable if v in self.exact and fits(tensor_type(v))])

    def constant(self, shape: Sequence[int], dtype: str) -> Value:
        value = self.b.const(data(self.rng, shape, dtype), dtype)
        self.state.step(value.owner)
        self.exact.add(value)
        return value

    def scalar(self, number: float, dtype: str) -> Value:
        value = self.b.const(np.asarray(number), dtype)
        self.state.step(value.owner)
        self.exact.add(value)
        return value

    def mate(self, value: Value) -> Value:
        """An operand that broadcasts with a value: another one, or a constant."""
        mine, dtype = tensor_type(value), self.kind(value)
        if self.chance(0.55):
            found = [
                v for v in self.pickable if self.kind(v) == dtype and fits(self.dims(v), mine.dims)
            ]
            if found:
                return self.choice(found)
        rank = self.number(0, mine.rank)
        keep = self.chance(0.5)
        shape = [
            d if isinstance(d, int) and (keep or self.chance(0.6)) else 1
            for d in mine.dims[mine.rank - rank :]
        ]
        return self.constant(shape, dtype)

    def inside(self, block: Block, build: Callable[[], Sequence[Value]]) -> list[Value]:
        """Builds a region: what it makes cannot be picked outside; gives what it yields."""
        point, known = self.b.point, list(self.pickable)
        self.b.point = type(point).at_end(block)
        self.depth += 1
        try:
            results = list(build())
            self.b.yield_(*results)
        finally:
            self.b.point, self.pickable = point, known
            self.depth -= 1
        return results

    def fresh(self) -> str:
        """A name for a loop's symbol."""
        self.loops += 1
        return f"i{self.loops}"

    def finish(self, outputs: Sequence[Value]) -> Graph:
        assert self.graph is not None
        return finish_graph(self.graph, {f"y{i}": v for i, v in enumerate(outputs)})


def fits(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Whether dims broadcast for certain."""
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(x == y or x == 1 or y == 1 for x, y in pairs)


def apart(array: Array) -> Array:
    """A copy that is aligned to its elements and to no more."""
    room = np.empty(array.size + 1, array.dtype)
    room[1:] = array.reshape(-1)
    return room[1:].reshape(array.shape)


def data(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    """Values of an element type: of both signs, small, with repetitions."""
    kind = TensorType.of((), dtype).dtype
    if kind.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.is_integer:
        return rng.integers(-9 if kind.is_signed else 0, 10, shape).astype(kind.numpy)
    return np.asarray(rng.integers(-16, 17, shape) / 8 + rng.integers(0, 2, shape) / 64).astype(
        kind.numpy
    )
