"""A model to code for this machine, in this process; what `cuvil.compile` does on a cache miss."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuvil.aot.custom_code import by_binary, library_of, shared_of
from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import CUSTOM, OBJECT, WEIGHTS, load_folder
from cuvil.engine.engine import Engine
from cuvil.engine.graph_source import GraphSource
from cuvil.engine.input_spec import dims_of_spec
from cuvil.errors import TargetError
from cuvil.frontends.declared import promised
from cuvil.frontends.onnx.external import SourceFile
from cuvil.frontends.onnx.model import Promises, import_opened
from cuvil.frontends.onnx.opener import OpenedModel, open_model
from cuvil.ir.graph import Graph
from cuvil.ops.custom.calls import ExternCall
from cuvil.ops.custom.identity import files_of
from cuvil.ops.custom.registry import OPERATORS
from cuvil.options import Options
from cuvil.pipeline import Built, Progress, compile_graph, workers
from cuvil.targets.backend import Backend, VariantSpec, runnable, variants_of
from cuvil.targets.target import Target
from cuvil.targets.target_list import resolve
from cuvil.tune import Tuner


@dataclass(frozen=True)
class HostBuild:
    """A compile for this machine. opened: the model it came from, None for a graph."""

    built: Built
    opened: OpenedModel | None = None

    @property
    def packages(self) -> list[str]:
        """The names of the backends' packages."""
        return [backend.package for backend in self.built.targets.backends]

    @property
    def target(self) -> str:
        """What the code is for, for people."""
        return f"{self.built.target.triple} {self.built.variants[0].name}"

    @property
    def external(self) -> list[SourceFile]:
        """The files of external data that were read, called as the model calls them."""
        return self.opened.external_sources if self.opened else []

    @property
    def operator_files(self) -> list[str]:
        """The files behind operators that installed packages declare, as far as they are loaded."""
        installed = [operator for operator in OPERATORS.values() if operator.package]
        return sorted({path for operator in installed for path in files_of(operator)})

    def came_from(self, identity: Sequence[int] | None) -> bool:
        """Whether the model's file was the one with this `cache_files.identity` when mapped."""
        file = self.opened.source if self.opened else None
        if file is None:
            return identity is None
        now = [file.device, file.inode, file.size, file.mtime_ns, file.ctime_ns]
        return now == list(identity or ())

    def write(self, folder: Path) -> None:
        """Writes the object, and the weights where there are any. OSError when that fails."""
        self.write_code(folder)
        if self.built.plan.weights_bytes:
            self.built.write_weights(folder / WEIGHTS)

    def write_code(self, folder: Path) -> None:
        """As `write`, without the weights."""
        self.built.write_object(folder / OBJECT)
        if self.built.calls:
            write_custom(self.built.calls, folder)


def compile_engine(
    source: Any,
    options: Options,
    *,
    threads: int | None = None,
    folder: str | None = None,
    progress: Progress = lambda stage: None,
) -> Engine:
    """Compiles a path, bytes, ModelProto or graph for this machine and loads it, without cache."""
    if isinstance(source, Graph):
        graph = promised(source, options)
        return load_built(HostBuild(build_for_host(graph, options, progress)), threads)
    return load_built(build_wanted(source, Wanted(options, folder=folder), progress), threads)


def build_wanted(source: Any, wanted: Wanted, progress: Progress) -> HostBuild:
    """Opens, imports and compiles a model for this machine."""
    progress("import")
    workers().start()
    if isinstance(source, GraphSource):
        graph = promised(source.graph(), wanted.options)
        return HostBuild(build_for_host(graph, wanted.options, progress))
    opened = open_model(source, folder=wanted.folder, reader=wanted.reader)
    graph = import_wanted(opened, wanted)
    return HostBuild(build_for_host(graph, wanted.options, progress), opened)


def import_wanted(opened: OpenedModel, wanted: Wanted) -> Graph:
    """The graph of an open model with its dims fixed and bound as asked."""
    options = wanted.options
    dims = {**dims_of_spec(opened, wanted.spec), **options.dims}
    return import_opened(opened, dims=dims, promises=Promises.of(options))


def build_for_host(graph: Graph, options: Options, progress: Progress) -> Built:
    """Builds the one variant that this machine runs best, weights in a file beside the object."""
    backend, target = resolve(options.target, options.cpu, options.features).host
    variants = runnable_variants(backend, target, options.variant)
    return compile_graph(
        graph, options, variants=variants, best_only=True, weights_file=WEIGHTS,
        progress=progress, tuner=Tuner(options.tune, progress) if options.tune else None,
    )  # fmt: skip


def runnable_variants(backend: Backend, target: Target, name: str = "") -> list[VariantSpec]:
    """The variants for a target that this machine can run, best first; of that name alone, where
    one is given. TargetError when there is none."""
    host = backend.host()
    if host is None or host.triple != target.triple:
        here = host.triple if host else "another cpu"
        raise TargetError(
            f"an engine runs on this machine ({here}), not on {target.triple}: "
            "use cuvil.Compiler or 'cuvil compile' for other targets"
        )
    variants = variants_of(backend, target, name)
    found = runnable(backend, target, variants)
    if found:
        return found
    have = backend.feature_bits([word[1:] for word in host.features if word[0] == "+"])
    lacking = [n for n in variants[-1].requires if backend.feature_bits([n]) & ~have]
    raise TargetError(f"this machine lacks {', '.join(lacking)}, which {target} requires")


def write_custom(calls: Sequence[ExternCall], folder: Path) -> None:
    """Says where the functions of custom operators are; what has to be built goes to the folder."""
    rows = []
    for number, group in enumerate(by_binary(calls)):
        binary = group[0].binary
        assert binary is not None
        path = f"custom{number}.so"
        if binary.kind == "library":
            path = str(library_of(group))
        else:
            shared_of(group, folder / path)
        rows += [
            {"operator": c.operator, "symbol": c.symbol, "library": path, "source": str(binary),
             "prototype": c.prototype}
            for c in group
        ]  # fmt: skip
    (folder / CUSTOM).write_text(json.dumps(rows), encoding="utf-8")


_MOST_IN_MEMORY = 1 << 30  # bytes of weights; the system can put away pages of a file, if need be


def load_built(build: HostBuild, threads: int | None) -> Engine:
    """Loads a build by way of a temporary folder, whose files may be removed after; but for huge
    ones, weights stay in memory."""
    size = build.built.plan.weights_bytes
    image = build.built.weights_image() if 0 < size <= _MOST_IN_MEMORY else None
    with tempfile.TemporaryDirectory(prefix="cuvil-") as scratch:
        if image is None:
            build.write(Path(scratch))
        else:
            build.write_code(Path(scratch))
        return load_folder(Path(scratch), threads, image)
