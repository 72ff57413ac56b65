"""Compiled ahead of time as `cuvil compile` does, and called from C by what the header declares."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cuvil.aot.write import compile_to_folder
from cuvil.ir.graph import Graph
from cuvil.onnx_backend import Compiled, CuvilBackend, Feeds
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.conformance.c_program import caller
from tools.conformance.forms import Form


class CBackend(CuvilBackend):
    """A shared library with its header, and the C program that calls it."""

    @staticmethod
    def compile_graph(graph: Graph) -> Compiled:
        program = caller(Path(include_dir()))
        folder = tempfile.mkdtemp(dir=program.folder)
        artefact = compile_to_folder(graph, folder, Options())

        def run(feeds: Feeds) -> Feeds:
            return program.call(artefact, feeds)

        return run


def backend() -> type[CuvilBackend]:
    """The form's backend."""
    return CBackend


FORM = Form("c", "from C", backend, rank=3)
