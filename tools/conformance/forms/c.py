"""Compiled ahead of time as `cuvil compile` does, and called from C by what the header declares."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import onnx

from cuvil.aot.write import compile_to_folder
from cuvil.ir.graph import Graph
from cuvil.onnx_backend import Compiled, CuvilBackend, CuvilRep, Feeds
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.conformance.c_program import caller
from tools.conformance.forms import Form
from tools.conformance.suite import Outcome
from tools.foreign import Machine


class CRep(CuvilRep):
    """A model that is compiled when it is first run."""

    @property
    def note(self) -> str:
        """The inputs that the library does not take, as they decide its shapes."""
        return f"compiled in: {', '.join(self._fixed)}" if self._fixed else ""


class CBackend(CuvilBackend):
    """A shared library with its header, and the C program that calls it; see `on` for others than
    this machine."""

    machine: ClassVar[Machine | None] = None
    options: ClassVar[Options] = Options()

    @classmethod
    def compile_graph(cls, graph: Graph) -> Compiled:  # type: ignore[override]
        program = caller(Path(include_dir()), cls.machine)
        folder = tempfile.mkdtemp(dir=program.folder)
        artefact = compile_to_folder(graph, folder, cls.options)

        def run(feeds: Feeds) -> Feeds:
            return program.call(artefact, feeds)

        return run

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> CRep:
        return CRep(model, cls.compile_graph)


def on(machine: Machine, options: Options) -> type[CBackend]:
    """The backend for an emulated machine; options: with its triple as target."""

    class Emulated(CBackend):
        pass

    Emulated.machine, Emulated.options = machine, options
    return Emulated


def backend() -> type[CuvilBackend]:
    """The form's backend."""
    return CBackend


def tell(outcomes: Sequence[Outcome]) -> str:
    """How many libraries take fewer inputs than the model."""
    fewer = sum(o.passed and bool(o.note) for o in outcomes)
    return (
        f"From C: of {sum(o.passed for o in outcomes)} libraries {fewer} have inputs compiled in."
    )


FORM = Form("c", "from C", backend, rank=3, tell=tell)
