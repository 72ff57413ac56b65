"""Compiled ahead of time as `cuvil compile` does, and called from C by what the header declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import onnx

from cuvil.aot.write import compile_to_folder
from cuvil.ir.graph import Graph
from cuvil.onnx_backend import Compiled, CuvilBackend, CuvilRep, Feeds
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.conformance.c_program import EmulatorError, caller
from tools.conformance.forms import Form
from tools.conformance.suite import ApartError, Outcome
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
        folder = TemporaryDirectory(dir=caller(Path(include_dir()), cls.machine).folder)
        artefact = compile_to_folder(graph, folder.name, cls.options)

        def run(feeds: Feeds, _: TemporaryDirectory[str] = folder) -> Feeds:  # goes with the run
            try:
                return caller(Path(include_dir()), cls.machine).call(artefact, feeds)
            except EmulatorError as error:
                raise ApartError(f"apart: {error}") from error

        return run

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> CRep:
        return CRep(model, cls.compile_graph)


def on(machines: Sequence[Machine], options: Options) -> type[CBackend]:
    """The backend for emulated machines of one triple, the target of the options: a case is
    compiled once, and judged on each of them."""

    class Emulated(CBackend):
        last: ClassVar[CRep | None] = None

        @classmethod
        def rounds(cls) -> Iterator[str]:
            """See Suite."""
            for cls.machine in machines:
                yield cls.machine.cpu or cls.machine.triple
            cls.last = None

        @classmethod
        def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> CRep:
            if cls.last is None or cls.last.model != model:
                cls.last = CRep(model, cls.compile_graph)
            return cls.last

    Emulated.machine, Emulated.options = machines[0], options
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
