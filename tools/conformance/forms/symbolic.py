"""Every dim of every input a symbol of its own; compiled so, then run at the case's sizes.

Which dims an operator lets be free is found by trying. At first all are, each with a symbol of its
own (the importer makes equal what an operator needs to be equal). Where that does not compile, the
dims that the error names are fixed one at a time; where it names none, dims are fixed from the last
one on until it does, and those of them that turn out not to matter are freed again. A dim of extent
1 that is stretched to another's extent is fixed, since 1 says there what no other extent says, and
those that the operator divides to get such a 1. A case counts when at least one dim is free.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from cuvil.errors import (
    Error,
    InternalError,
    RuntimeFailure,
    ShapeMismatchError,
    UnsupportedError,
)
from cuvil.frontends.onnx import DataDependentError, import_model
from cuvil.frontends.onnx.structures import Structure, regrouped
from cuvil.ir.dims import Dim, evaluate, symbol, symbols
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.onnx_backend import (
    Compile,
    Compiled,
    CuvilBackend,
    CuvilRep,
    may_be_fixed,
    parts,
    structure_of,
)
from tools.conformance.forms import Form
from tools.conformance.suite import ApartError, Outcome

Place = tuple[str, int]  # a tensor of the inputs, an axis
TOLD = 5  # kinds of fixed dims that are rarer are summed up
_NAME = re.compile(r"\bD(\d+)\b")
_NODE = re.compile(r"node '[^']*' \((\S+?)\)[^:]*: (.*)")
_PART = re.compile(r"; \S+\[\d+\]: ")
_OF = re.compile(r"\S+\[\d+\]|\bD\d+\b")


class SymbolicRep(CuvilRep):
    """A model whose inputs' dims are free, as many as can be."""

    def __init__(self, model: onnx.ModelProto, compile_graph: Compile) -> None:
        super().__init__(model, compile_graph)
        self._places: list[Place] = []
        self._extents: list[int] = []
        self._kept: dict[int, str] = {}  # number of a dim that is fixed -> why
        self._guessed: list[int] = []  # those that no error named
        self._needed: set[str] | None = None  # inputs that must be constants
        self._ready: Compiled | None = None

    @property
    def note(self) -> str:
        """How many dims are free; which are not, and why."""
        fixed = [f"{self._word(k)}: {why}" for k, why in sorted(self._kept.items())]
        free = len(self._places) - len(self._kept)
        return "; ".join([f"{free} of {len(self._places)} free", *fixed])

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs of the model as the first call's sizes let it be compiled."""
        given = self._feeds(inputs)
        while True:
            if self._ready is None:
                self._ready = self._search(given)
            if len(self._kept) == len(self._places):
                raise UnsupportedError(f"no dim can be free: {next(iter(self._kept.values()))}")
            try:
                results = self._ready(self._arrays(given))
                return tuple(regrouped(name, results) for name in self.output_names)
            except (ShapeMismatchError, RuntimeFailure) as error:
                self._stretched_by_run(error)

    def _stretched_by_run(self, error: Error) -> None:
        """Fixes a dim of extent 1, which a shape that the run computes may stretch; where there is
        none, one that the error names, for a quotient of those may be 1 and stretched."""
        free = [k for k in range(len(self._places)) if k not in self._kept]
        ones = [k for k in free if self._extents[k] == 1]
        condition = str(error).rsplit(" (D", 1)[0]  # the values of all dims follow
        named = [k for k in free if str(k) in _NAME.findall(condition)]
        if not ones and not named:
            raise error
        chosen = max(ones or named)
        self._kept[chosen] = f"may be stretched from 1: {error}"
        self._ready = None

    def _search(self, given: Mapping[str, Any]) -> Compiled:
        """The model compiled with as many free dims as can be."""
        while True:
            self._number(given)
            try:
                graph = self._imported(given)
                if self._guessed:
                    self._free_again(given)
                    graph = self._imported(given)
                return self._compile(graph)
            except DataDependentError as error:
                if not self._value_needed(error, given):
                    self._give_way(error)
            except InternalError:
                raise  # the compiler's own fault, whatever is fixed
            except Error as error:
                self._give_way(error)

    def _value_needed(self, error: DataDependentError, given: Mapping[str, Any]) -> bool:
        """Whether the values of more inputs have to be known, as in the case as it is."""
        if self._needed is None:
            self._needed = self._needed_values(given)
        more = [n for n in error.inputs if n in self._needed and n not in self._fixed]
        self._fixed = (*self._fixed, *more)
        return bool(more)

    def _needed_values(self, given: Mapping[str, Any]) -> set[str]:
        """The inputs whose values have to be known when all dims are."""
        needed: set[str] = set()
        structures = {n: structure_of(v) for n, v in given.items() if n in self._structured}
        while True:
            try:
                import_model(
                    self.model, values={n: given[n] for n in needed}, structures=structures
                )
                return needed
            except DataDependentError as error:
                more = set(error.inputs) - needed
                if not more or not all(may_be_fixed(given.get(n)) for n in more):
                    return needed
                needed |= more

    def _give_way(self, error: Error) -> None:
        """Fixes a dim that the error names, or else the last one that is free."""
        free = [k for k in range(len(self._places)) if k not in self._kept]
        said = [int(k) for k in _NAME.findall(str(error))]
        chosen = next((k for k in said if k in free), None)
        if chosen is None:
            if not free:
                raise error
            chosen = free[-1]
            self._guessed.append(chosen)
        self._kept[chosen] = _NAME.sub(lambda m: self._word(int(m[1])), str(error))

    def _free_again(self, given: Mapping[str, Any]) -> None:
        """Frees dims that were fixed without being named, where the import still works."""
        guessed, self._guessed = self._guessed, []
        for number in guessed:
            why = self._kept.pop(number)
            try:
                self._imported(given)
            except Error as error:
                self._kept[number] = str(error) or why

    def _number(self, given: Mapping[str, Any]) -> None:
        """Gives each dim of each tensor that is still an input a number."""
        arrays = self._arrays(given)
        places = [(name, axis) for name, array in arrays.items() for axis in range(array.ndim)]
        if not places:
            raise ApartError("apart: no input has a dim")
        if places != self._places:
            self._places, self._kept, self._guessed = places, {}, []
            self._extents = [arrays[name].shape[axis] for name, axis in places]

    def _arrays(self, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The tensors that are inputs."""
        free = {name: value for name, value in given.items() if name not in self._fixed}
        return {k: array for name, value in free.items() for k, array in parts(name, value)}

    def _imported(self, given: Mapping[str, Any]) -> Graph:
        """The graph with the dims free that are not kept; those that are stretched are kept."""
        while True:
            graph = self._import(given)
            stretched = self._stretched(graph)
            if stretched is None:
                return graph
            self._kept[stretched] = "is stretched from 1"

    def _import(self, given: Mapping[str, Any]) -> Graph:
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        structures = {}
        for value in model.graph.input:
            if value.name not in given or value.name in self._fixed:
                continue
            if value.name in self._structured:
                structures[value.name] = self._structure(value.name, given[value.name])
            else:
                self._declare(value, given[value.name])
        return import_model(model, values={n: given[n] for n in self._fixed}, structures=structures)

    def _declare(self, value: onnx.ValueInfoProto, array: np.ndarray) -> None:
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        shape.SetInParent()
        for dim in self._dims(value.name, array):
            if isinstance(dim, int):
                shape.dim.add(dim_value=dim)
            else:
                shape.dim.add(dim_param=str(dim))

    def _structure(self, name: str, value: Any) -> Structure:
        if value is None:
            return None
        types = [
            TensorType.of(self._dims(n, a), from_numpy(a.dtype)) for n, a in parts(name, value)
        ]
        return types[0] if isinstance(value, np.ndarray) else types

    def _dims(self, name: str, array: np.ndarray) -> list[Dim]:
        numbers = [self._places.index((name, axis)) for axis in range(array.ndim)]
        return [self._extents[k] if k in self._kept else symbol(f"D{k}") for k in numbers]

    def _stretched(self, graph: Graph) -> int | None:
        """A dim of extent 1 that the importer takes to be equal to one of another extent."""
        env = {f"D{k}": extent for k, extent in enumerate(self._extents)}
        types = {n: tensor_type(v) for n, v in zip(graph.input_names, graph.inputs, strict=True)}
        for number, (name, axis) in enumerate(self._places):
            dim = types[name].dims[axis]
            if evaluate(dim, env) == self._extents[number]:
                continue
            for k in (number, *(int(s[1:]) for s in symbols(dim))):
                if self._extents[k] == 1 and k not in self._kept:
                    return k
        return None

    def _word(self, number: int) -> str:
        name, axis = self._places[number]
        return f"{name}[{axis}]"


class SymbolicBackend(CuvilBackend):
    """Compiles models with free dims."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> SymbolicRep:
        return SymbolicRep(model, cls.compile_graph)


def tell(outcomes: Sequence[Outcome]) -> str:
    """In how many cases all dims are free, and what fixed the others."""
    notes = [o.note for o in outcomes if o.passed and not o.apart]
    whole = sum(";" not in note for note in notes)
    kinds = Counter(_kind(part) for note in notes for part in _PART.split(note)[1:])
    lines = [f"- {count}: {kind}" for kind, count in kinds.most_common() if count >= TOLD]
    rest = sum(count for count in kinds.values() if count < TOLD)
    lines += [f"- {rest}: others"] if rest else []
    head = f"Free dims: all of them in {whole} cases, some in {len(notes) - whole}. Fixed were:"
    return "\n".join([head, "", *lines])


def _kind(why: str) -> str:
    """Why a dim is fixed, without the names of one case."""
    found = _NODE.search(why)
    operator, text = found.groups() if found else ("", why)
    kind = _OF.sub("a dim", text.split(";")[0])
    return f"{operator}: {kind}" if operator else kind.split(":")[0]


FORM = Form("symbolic", "dims free", lambda: SymbolicBackend, rank=1, tell=tell)
