"""Small ONNX models written as code, compiled to native code and run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cuvil.aot.write import compile_to_folder
from cuvil.engine.engine import Engine
from cuvil.engine.front_door import compile_engine
from cuvil.options import Options
from cuvil_runtime import load

Array = np.ndarray[Any, Any]

# What is compiled: extents known, extents open, inputs known, a library for C programs.
FORMS = ("fixed", "symbolic", "folded", "library")


class Model:
    """Grows node by node; names of values are strings.

    `feed` makes an input with a value, `const` an initializer, `op` a node. `run` compiles all and
    gives the values that `keep` was told, in order. `form` is one of FORMS: "symbolic" opens the
    extents of inputs that name none, "folded" makes constants of inputs.
    """

    def __init__(self, opset: int = 17, form: str = "fixed") -> None:
        self.opset, self.form = opset, form
        self.feeds: dict[str, Array] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.kept: list[str] = []
        self._count = 0

    def fresh(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def feed(self, value: Any, dims: Sequence[Any] | None = None, dtype: Any = None) -> str:
        """An input; dims: its declared extents, names for those that the run decides."""
        array, name = np.asarray(value, dtype), self.fresh("x")
        if self.form == "folded":
            return self.const(array)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        shape = array.shape if dims is None else dims
        if self.form == "symbolic" and dims is None:
            shape = tuple(f"{name}_{axis}" for axis in range(array.ndim))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.feeds[name] = array
        return name

    def const(self, value: Any, dtype: Any = None) -> str:
        name = self.fresh("c")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def op(self, kind: str, *inputs: str | None, outputs: int = 1, **attrs: Any) -> Any:
        """A node; None is an absent input. One output comes bare, several as a list."""
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        return self.node(kind, inputs, names, **attrs)

    def node(
        self, kind: str, inputs: Sequence[str | None], outputs: Sequence[str], **attrs: Any
    ) -> Any:
        made = helper.make_node(kind, [i or "" for i in inputs], list(outputs), **attrs)
        made.name = outputs[0] or self.fresh(kind)
        self.nodes.append(made)
        return outputs[0] if len(outputs) == 1 else list(outputs)

    def keep(self, *names: str) -> None:
        self.kept += names

    def proto(self) -> onnx.ModelProto:
        """The model, outputs without types: the compiler knows them."""
        typed = {info.name: info for info in self.inputs}
        results = [typed.get(n, onnx.ValueInfoProto(name=n)) for n in dict.fromkeys(self.kept)]
        graph = helper.make_graph(self.nodes, "m", self.inputs, results, self.constants)
        used = dict.fromkeys(n.domain for n in self.nodes if n.domain)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("local", 1)]
        opsets += [
            helper.make_opsetid(d, 3 if d == "ai.onnx.ml" else 1) for d in used if d != "local"
        ]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=8, functions=self.functions
        )

    def engine(self, **options: Any) -> Engine:
        if self.form == "library":
            with tempfile.TemporaryDirectory() as folder:
                how = {"target": "x86_64", "cpu": "x86-64", **options}
                made = compile_to_folder(self.proto(), folder, Options(**how))
                return Engine(load(str(made.library), threads=1))
        return compile_engine(self.proto(), Options(**options), threads=1)

    def run(self, feeds: Mapping[str, Any] | None = None, **options: Any) -> list[Array]:
        return outputs_of(self, self.engine(**options), feeds)


def outputs_of(m: Model, engine: Engine, feeds: Mapping[str, Any] | None = None) -> list[Array]:
    """What the model keeps, for its own feeds or with some of them replaced."""
    found = dict(zip(dict.fromkeys(m.kept), engine.run(None, {**m.feeds, **(feeds or {})}),
                     strict=True))  # fmt: skip
    return [found[name] for name in m.kept]


def f32(*values: Any) -> Array:
    return np.array(values if len(values) != 1 else values[0], np.float32)


def arange(*shape: int, dtype: Any = np.float32) -> Array:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def branch(name: str, build: Any) -> onnx.GraphProto:
    """A subgraph without inputs: `build(m)` gives the names it yields."""
    m = Model()
    results = [onnx.ValueInfoProto(name=n) for n in build(m)]
    return helper.make_graph(m.nodes, name, m.inputs, results, m.constants)


def check(got: Any, want: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Equal shapes, values within a tolerance, NaN where NaN is due."""
    want = np.asarray(want)
    assert got.shape == want.shape, f"{got.shape} for {want.shape}"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
