"""`cuvil.compile`: a model to a running engine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from cuvil.engine.engine import Engine
from cuvil.frontends.onnx import import_model
from cuvil.ir.graph import Graph
from cuvil.options import Options
from cuvil.pipeline import Built, Progress, compile_graph
from cuvil.targets.registry import find
from cuvil_runtime import load_object


def compile_engine(
    source: Any,
    options: Options,
    *,
    threads: int | None = None,
    folder: str | None = None,
    progress: Progress = lambda stage: None,
) -> Engine:
    """Compiles a path, bytes or ModelProto for this machine and loads it; no linker is needed."""
    progress("import")
    graph = source if isinstance(source, Graph) else import_model(source, folder=folder,
                                                                 dims=dict(options.dims))  # fmt: skip
    graph.bounds.update(options.bounds)
    built = build_for_host(graph, options, progress)
    with tempfile.TemporaryDirectory(prefix="cuvil-") as scratch:
        return load_built(built, Path(scratch), threads)


def build_for_host(graph: Graph, options: Options, progress: Progress) -> Built:
    """Builds the one variant that this machine runs best, weights in a file beside the object."""
    backend, target = find(options.target, options.cpu, options.features)
    best = backend.variants(target)[:1]
    return compile_graph(
        graph, options, variants=best, weights_file="weights.bin", progress=progress
    )


def load_built(built: Built, folder: Path, threads: int | None) -> Engine:
    """Writes object and weights into `folder` and loads them; mapped files may be removed after."""
    path, weights = folder / "model.o", folder / "weights.bin"
    built.write_object(path)
    if built.plan.weights_bytes:
        built.write_weights(weights)
    image = os.fspath(weights) if built.plan.weights_bytes else None
    return Engine(load_object(path.read_bytes(), weights=image, threads=threads))
