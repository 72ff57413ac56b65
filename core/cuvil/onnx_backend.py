"""Cuvil as a backend of the ONNX test suite: `onnx.backend.test.BackendTest(cuvil.onnx_backend)`.

Models that take a shape, axes and the like as an input are compiled for the values of the first
call, and again for other values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from cuvil.engine.front_door import compile_engine
from cuvil.errors import InputError
from cuvil.frontends.onnx import DataDependentError, import_model
from cuvil.frontends.onnx.structures import Structure, named, regrouped
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.graph import Graph
from cuvil.ir.types import TensorType
from cuvil.options import Options

__all__ = ["CuvilBackend", "CuvilRep", "may_be_fixed", "parts", "structure_of"]

Feeds = Mapping[str, np.ndarray]
Given = np.ndarray | list[np.ndarray] | None
Compiled = Callable[[Feeds], Feeds]
Compile = Callable[[Graph], Compiled]

_STRUCTURES = ("sequence_type", "optional_type")
_FIXED_BYTES = 1024  # an input of a shape, axes, ... is not larger


def _given(value: Any, structured: bool) -> Given:
    """A tensor, a sequence of them, or an absent optional."""
    if structured and (value is None or isinstance(value, list | tuple)):
        return None if value is None else [np.asarray(v) for v in value]
    return np.asarray(value)


def parts(name: str, value: Given) -> Iterator[tuple[str, np.ndarray]]:
    """The tensors of an input, by name."""
    if isinstance(value, np.ndarray):
        yield name, value
    else:
        yield from ((f"{name}[{k}]", v) for k, v in enumerate(value or ()))


def structure_of(value: Given) -> Structure:
    """What the importer is told of an input that is a sequence or an optional."""
    if isinstance(value, np.ndarray):
        return _type_of(value)
    return None if value is None else [_type_of(v) for v in value]


def _type_of(array: np.ndarray) -> TensorType:
    return TensorType.of(array.shape, from_numpy(array.dtype))


def may_be_fixed(value: Given) -> bool:
    """Whether an input is small enough for its value to be compiled in."""
    return isinstance(value, np.ndarray) and value.nbytes <= _FIXED_BYTES


class CuvilRep(BackendRep):
    """A model that is imported when it is first run."""

    def __init__(self, model: onnx.ModelProto, compile_graph: Compile) -> None:
        super().__init__()
        constants = {tensor.name for tensor in model.graph.initializer}
        self.model = model
        self.input_names = [v.name for v in model.graph.input if v.name not in constants]
        self.output_names = [v.name for v in model.graph.output]
        self._structured = {
            v.name for v in model.graph.input if v.type.WhichOneof("value") in _STRUCTURES
        }
        self._compile = compile_graph
        self._fixed: tuple[str, ...] = ()
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs for inputs by position or by name."""
        given = self._feeds(inputs)
        run = self._compiled_for(given)
        results = run({k: v for n in given if n not in self._fixed for k, v in parts(n, given[n])})
        values = [regrouped(name, results) for name in self.output_names]
        return tuple(namedtupledict("Outputs", self.output_names)(*values))

    def _feeds(self, inputs: Any) -> dict[str, Given]:
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, Mapping):
            if len(inputs) > len(self.input_names):
                raise InputError(f"{len(inputs)} inputs, the model has {len(self.input_names)}")
            inputs = dict(zip(self.input_names, inputs, strict=False))
        return {name: _given(value, name in self._structured) for name, value in inputs.items()}

    def _compiled_for(self, feeds: Mapping[str, Given]) -> Compiled:
        structures = {n: structure_of(v) for n, v in feeds.items() if n in self._structured}
        kinds = tuple((n, str(named(n, s))) for n, s in structures.items())
        while True:
            key = (*kinds, *(np.ascontiguousarray(feeds[n]).tobytes() for n in self._fixed))
            if key in self._compiled:
                return self._compiled[key]
            try:
                values: Any = {n: feeds[n] for n in self._fixed}
                graph = import_model(self.model, values=values, structures=structures)
                return self._compiled.setdefault(key, self._compile(graph))
            except DataDependentError as error:
                more = [n for n in error.inputs if n not in self._fixed]
                if not more or any(not may_be_fixed(feeds.get(n)) for n in more):
                    raise
                self._fixed = (*self._fixed, *more)
                self._compiled.clear()


class CuvilBackend(Backend):
    """Compiles models for this machine's CPU and runs them."""

    @staticmethod
    def compile_graph(graph: Graph) -> Compiled:
        """Native code for an imported graph, as a function of arrays by name.

        A subclass that overrides this runs the suite on something else.
        """
        engine = compile_engine(graph, Options())
        return lambda feeds: dict(zip(graph.output_names, engine.run(None, feeds), strict=True))

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> CuvilRep:
        """A runnable model. ModelError and UnsupportedError come when it is run."""
        return CuvilRep(model, cls.compile_graph)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **_: Any
    ) -> tuple[Any, ...]:
        """Prepares and runs at once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """One node on these inputs, at the newest opset or `opset_version`."""
        arrays = [np.asarray(v) for v in inputs]
        names = [name for name in node.input if name]
        described = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(names, arrays, strict=True)
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], node.op_type, described, outputs)
        opset = options.get("opset_version", onnx.defs.onnx_opset_version())
        opsets = [onnx.helper.make_opsetid(node.domain, opset)]
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        return cls.run_model(model, dict(zip(names, arrays, strict=True)), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for the CPU."""
        return device == "CPU"


prepare = CuvilBackend.prepare
run_model = CuvilBackend.run_model
run_node = CuvilBackend.run_node
supports_device = CuvilBackend.supports_device
