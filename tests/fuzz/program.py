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
from cuvil.ir.names import Block, Operation, Value
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
MAX_SIZE = 4000  # elements of one tensor; ten times as many where extents are large


class Misfit(Exception):
    """A step that cannot be taken from here."""


class Module:
    """What the programs of one graph share.

    envs: the sizes of the graph's symbols, one run each. states: the values of everything so far,
    by env. found: how many extents so far are found by the run; loops: how many loops there are.
    """

    def __init__(self, inputs: Mapping[str, TensorType], envs: Sequence[Env]) -> None:
        self.pool = Pool()
        self.graph: Graph = new_graph("fuzz", inputs, self.pool)
        self.b = Builder(self.graph.block, self.pool)
        self.inputs = dict(zip(inputs, self.graph.inputs, strict=True))
        self.envs = [dict(env) for env in envs]
        self.states = [_State(self.pool, dict(env), {}) for env in self.envs]
        self.found = 0
        self.loops = 0

    def finish(self, outputs: Mapping[str, Value]) -> Graph:
        return finish_graph(self.graph, outputs)


class Program:
    """One random program: a part of a module's graph that grows step by step.

    seed: of its choices and of its inputs' values. exact: values that compiled code must give bit
    by bit, so that comparing or rounding them is safe. special: inputs hold NaN, infinities, both
    zeros and denormal numbers, and only what is exact is built from them.
    """

    def __init__(
        self, seed: int, *, large: bool = False, rules: bool = False, special: bool = False
    ) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.indices = rules  # integer inputs are small and not negative
        self.positive = rules and self.chance(0.6)  # float inputs are, and not 0
        self.special = special
        self.extents = LARGE if large else EXTENTS
        self.max_size = 10 * MAX_SIZE if large or rules else MAX_SIZE
        self.module: Module = None  # type: ignore[assignment]
        self.pickable: list[Value] = []
        self.exact: set[Value] = set()
        self.depth = 0

    @property
    def b(self) -> Builder:
        return self.module.b

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
    def begin(self, module: Module, inputs: Mapping[str, Value]) -> None:
        """Starts in a module with these of its inputs."""
        self.module = module
        for env, state in enumerate(module.states):
            for name, array in self.feeds(inputs, env).items():
                state.values[inputs[name]] = array
        for value in inputs.values():
            self.keep(value, exact=True)

    def feeds(self, inputs: Mapping[str, Value], env: int) -> dict[str, Array]:
        """Inputs for the given environment."""
        rng = np.random.default_rng((self.seed, env))
        found = {}
        for name, value in inputs.items():
            shape = [evaluate(d, self.module.envs[env]) for d in self.dims(value)]
            array = data(rng, shape, self.kind(value))
            if self.special:
                array = with_special(rng, array)
            elif self.positive and array.dtype.kind not in "biu":
                array = (np.abs(array.astype(np.float32)) / 4 + 0.5).astype(array.dtype)
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
        name = f"u{self.module.found}"
        self.module.found += 1
        self.b.emit("bind", [count], symbol=name, most=most)
        op = self.b.point.block.last_op
        assert op is not None
        self.step(op)
        return symbol(name)

    def step(self, op: Operation) -> list[tuple[Array, ...]]:
        """Computes an op: its results by environment."""
        return [state.step(op) for state in self.module.states]

    def settle(self, op: Operation) -> None:
        """Computes an op that was just built; drops it where no test can be made of its value."""
        reason = "" if self._small(op) else "too large"
        results: list[tuple[Array, ...]] = []
        try:
            results = [] if reason else self.step(op)
        except RuntimeFailure as error:
            reason = str(error)
        if reason or not all(self._usable(a) for arrays in results for a in arrays):
            op.detach()
            op.erase()
            raise Misfit(reason)

    def _small(self, op: Operation) -> bool:
        """Whether the results have few elements for every environment."""
        dims = [tensor_type(r).size for r in op.results]
        sizes = (evaluate(d, state.env) for d in dims for state in self.module.states)
        return all(0 <= n <= self.max_size for n in sizes)

    def _usable(self, array: Array) -> bool:
        kind = from_numpy(array.dtype)
        if not kind.is_float or array.size == 0 or self.special:
            return True
        wide = array.astype(np.float64)
        limit = LIMITS.get(kind.name, 1e3)
        return bool(np.isfinite(wide).all() and np.abs(wide).max() <= limit)

    def is_constant(self, value: Value) -> bool:
        return getattr(value.owner, "name", "") == "cuvil.constant"

    def arrays(self, value: Value) -> list[Array]:
        """The value by environment."""
        return [state.values[value] for state in self.module.states]

    def is_empty(self, value: Value) -> bool:
        """Whether some environment leaves it without elements."""
        return any(a.size == 0 for a in self.arrays(value))

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

    def constant(self, shape: Sequence[Any], dtype: str) -> Value:
        """A constant of random elements. Misfit for a symbolic shape."""
        if not all(isinstance(d, int) for d in shape):
            raise Misfit
        return self.const(data(self.rng, shape, dtype), dtype)

    def scalar(self, number: float, dtype: str) -> Value:
        return self.const(np.asarray(number), dtype)

    def const(self, array: Array, dtype: str | None = None) -> Value:
        """A constant of these elements."""
        value: Value = self.b.const(array, dtype)
        self.step(value.owner)  # type: ignore[arg-type]
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
        self.module.loops += 1
        return f"i{self.module.loops}"


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


SPECIAL = {"f16": 6e-8, "bf16": 1e-40, "f32": 1e-40, "f64": 5e-310}


def with_special(rng: np.random.Generator, array: Array) -> Array:
    """The array with some of its floats NaN, infinite, zero of either sign, or denormal."""
    kind = from_numpy(array.dtype).name
    if kind not in SPECIAL:
        return array
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, SPECIAL[kind]], np.float64)
    chosen = odd[rng.integers(len(odd), size=array.shape)].astype(array.dtype)
    return np.where(rng.random(array.shape) < 0.25, chosen, array)
