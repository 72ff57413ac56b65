"""Ahead of time: a model to a folder that a C program, or Python, needs nothing else to use."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuvil.aot.build_files import cmake_config, pkg_config
from cuvil.aot.custom_code import blamed, by_binary, library_of, object_of, soname
from cuvil.aot.embedded_header import embedded_header
from cuvil.aot.header import header
from cuvil.aot.imports import ALLOWED, FREESTANDING, check_imports
from cuvil.aot.link import Extra, link_shared
from cuvil.aot.manifest import manifest, manifest_text
from cuvil.codegen.elf import machine_of
from cuvil.codegen.objects import Member, write_archive
from cuvil.engine.cache_files import digest_file
from cuvil.engine.graph_source import GraphSource
from cuvil.errors import ArtefactError, CompileError, OptionError
from cuvil.frontends.declared import promised
from cuvil.frontends.onnx import import_model
from cuvil.frontends.onnx.model import Promises
from cuvil.ir.graph import Graph
from cuvil.ir.text import print_ir
from cuvil.options import EMITS, Options
from cuvil.pipeline import Built, Progress, compile_graph, weights_symbol, workers
from cuvil.targets.target_list import resolve
from cuvil.tune import Tuner
from cuvil.version import VERSION
from cuvil_runtime import include_dir

LINKABLE = ("so", "a", "o")
PUBLIC_HEADERS = ("abi.h", "cuvil.h", "cuvil.hpp", "device.h")
_SUFFIXES = {"llvm": "ll", "asm": "s"}


@dataclass(frozen=True)
class Artefact:
    """What a compile left in `folder`. files: kind -> path; a kind is one of `EMITS`, "header",
    "weights", "manifest", "pkg-config" or "cmake" (of "llvm" and "asm": the folder of the files),
    or "custom:NAME", a shared library of a custom operator that a library needs beside it. tuned:
    what tuning found, for people.
    """

    name: str
    folder: Path
    files: dict[str, Path]
    manifest: dict[str, Any] = field(repr=False)
    tuned: str = ""

    @property
    def library(self) -> Path | None:
        """The shared library, which `cuvil.load` takes."""
        return self.files.get("so")


def compile_to_folder(
    source: Any,
    out_dir: str | os.PathLike[str],
    options: Options | None = None,
    *,
    emit: Sequence[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = lambda stage: None,
) -> Artefact:
    """Compiles a model for C: library, header, build files, manifest, into `out_dir`.

    source: a path, the bytes of a model, a ModelProto, a graph (which is used up), or the source
    of one. emit: any of
    `EMITS`; None: a shared library, or an archive where there is no operating system. folder: where
    external data of the model is. All files appear at once, or none does; the same input gives the
    same bytes. Raises cuvil.Error subclasses.
    """
    options = options or Options()
    kinds = _checked(emit, options)
    hashed = _hashed(source)
    progress("import")
    workers().start()
    if isinstance(source, Graph | GraphSource):
        made = source if isinstance(source, Graph) else source.graph()
        graph = promised(made, options)
    else:
        graph = import_model(
            source, folder=folder, dims=dict(options.dims), elements=dict(options.elements),
            promises=Promises.of(options),
        )  # fmt: skip
    name = graph.name
    tuner = Tuner(options.tune, progress) if options.tune else None
    built = compile_graph(graph, options, library=True, progress=progress, tuner=tuner)
    model = {"name": name, "sha256": hashed()}
    written = write_artefact(built, out_dir, kinds, model, progress)
    return replace(written, tuned=tuner.summary()) if tuner else written


def split_output(path: str | os.PathLike[str]) -> tuple[Path, str, tuple[str, ...] | None]:
    """Folder, model name and kinds that an output path means.

    `build/libbert.so` is ("build", "bert", ("so",)); a path without such an ending is a folder,
    with no name and no kinds. OptionError where the folder is a file.
    """
    path = Path(path)
    kind = path.suffix.removeprefix(".")
    if kind not in LINKABLE:
        if path.exists() and not path.is_dir():
            ways = "a folder, or libNAME.so, libNAME.a or NAME.o"
            raise OptionError(f"output {path} is a file: give {ways}")
        return path, "", None
    name = path.stem if kind == "o" else path.stem.removeprefix("lib")
    return path.parent, name, (kind,)


def write_artefact(
    built: Built,
    out_dir: str | os.PathLike[str],
    kinds: Sequence[str] = ("so",),
    model: dict[str, str] | None = None,
    progress: Progress = lambda stage: None,
) -> Artefact:
    """Writes what `compile_graph(library=True)` built; see `compile_to_folder`."""
    given = [weights_symbol(built.plan)] if built.embedded else []
    given += [call.symbol for call in built.calls]
    allowed = FREESTANDING if built.freestanding else ALLOWED
    support = built.backend.support.get(built.target.triple, ())
    imported = check_imports(built.objects, given, allowed, support)
    try:
        with staged(Path(out_dir)) as stage:
            progress("write")
            files = _Writer(built, stage, imported, progress).write(kinds)
            names = [str(p.relative_to(stage)) for p in files.values()]
            own = [path.name for kind, path in files.items() if kind.startswith("custom:")]
            data = manifest(built, model or {}, names, own)
            if "weights" in files:
                data["weights_sha256"] = digest_file(files["weights"])
            files["manifest"] = stage / "manifest.json"
            files["manifest"].write_text(manifest_text(data), encoding="utf-8")
    except OSError as error:
        raise ArtefactError(f"{out_dir}: {error.strerror or error}") from error
    moved = {kind: Path(out_dir, path.relative_to(stage)) for kind, path in files.items()}
    return Artefact(built.plan.name, Path(out_dir), moved, data)


@dataclass
class _Writer:
    built: Built
    stage: Path
    imported: list[str]
    progress: Progress
    libraries: dict[str, Path] = field(default_factory=dict)

    def write(self, kinds: Sequence[str]) -> dict[str, Path]:
        """All files but the manifest: kind -> path in the stage."""
        name = self.built.plan.name
        files = {kind: self._texts(kind) for kind in kinds if kind not in LINKABLE}
        files["header"] = self._text(f"{name}.h", self._header())
        self._public_headers()
        linkable = [kind for kind in kinds if kind in LINKABLE]
        if linkable:
            files |= self._linked(linkable)
        return files

    def _header(self) -> str:
        plan, code, calls = self.built.plan, self.built.code, self.built.calls
        if not self.built.freestanding:
            return header(plan, plan.arena_bytes, calls)
        return embedded_header(plan, code.memory_bytes, self.imported, calls)

    def _linked(self, kinds: Sequence[str]) -> dict[str, Path]:
        name, files = self.built.plan.name, {}
        item = self.stage / f"{name}.o"
        self.built.write_object(item)
        if "a" in kinds:
            files["a"] = self.stage / f"lib{name}.a"
            write_archive(files["a"], [Member(item.name, item)])
        if "so" in kinds:
            files["so"] = self.stage / f"lib{name}.so"
            self._link(item, files["so"])
            files |= self.libraries
        if "o" in kinds:
            files["o"] = item
        else:
            item.unlink()
        if self.built.weights_file:
            files["weights"] = self.stage / self.built.weights_file
            self.built.write_weights(files["weights"])
        if kinds != ["o"] and not self.built.freestanding:
            files["pkg-config"] = self._text(f"{name}.pc", pkg_config(name, VERSION, kinds))
            files["cmake"] = self._text(f"{name}Config.cmake", cmake_config(name, kinds))
        return files

    def _link(self, source: Path, output: Path) -> None:
        self.progress("link")
        with tempfile.TemporaryDirectory(prefix="cuvil-custom-") as scratch:
            extra = self._custom(Path(scratch))
            try:
                self._link_with(source, output, extra)
            except CompileError as error:
                raise blamed(error, self.built.calls) from error

    def _custom(self, scratch: Path) -> Extra:
        """What the functions of custom operators are linked from; shared libraries come along."""
        objects, libraries = [], []
        for group in by_binary(self.built.calls):
            binary = group[0].binary
            assert binary is not None
            if binary.kind != "library":
                objects.append(object_of(group[0], scratch))
                continue
            given = library_of(group)
            libraries.append(self.stage / soname(given))
            shutil.copy(given, libraries[-1])
        return Extra(tuple(objects), tuple(libraries))

    def _link_with(self, source: Path, output: Path, extra: Extra) -> None:
        backend, triple = self.built.backend, self.built.target.triple
        link_shared(
            source,
            output,
            machine=machine_of(self.built.objects[0]),
            emulation=backend.linker_emulation.get(triple, ""),
            libraries=backend.libraries.get(triple, ()),
            imported=self.imported,
            extra=extra,
        )
        for library in extra.libraries:
            self.libraries[f"custom:{library.name}"] = library

    def _texts(self, kind: str) -> Path:
        """Writes what people read: the program and kernels, or LLVM's view of each unit."""
        name, plan = self.built.plan.name, self.built.plan
        if kind == "mlir":
            return self._text(
                f"{name}.mlir", "".join(map(print_ir, (plan.program, *plan.kernels.values())))
            )
        units = [replace(unit, emit=kind) for unit in self.built.code.units]
        folder = self.stage / f"{name}.{kind}"
        folder.mkdir()
        for unit, text in zip(units, workers().compile(units), strict=True):
            (folder / f"{unit.name}.{_SUFFIXES[kind]}").write_bytes(text)
        return folder

    def _public_headers(self) -> None:
        target = self.stage / "include" / "cuvil"
        target.mkdir(parents=True)
        for file in ("abi.h",) if self.built.freestanding else PUBLIC_HEADERS:
            shutil.copyfile(Path(include_dir(), "cuvil", file), target / file)

    def _text(self, file: str, text: str) -> Path:
        path = self.stage / file
        path.write_text(text, encoding="utf-8")
        return path


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A folder whose files move into `out`, each by one rename, when all are complete."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".cuvil-", dir=out) as scratch:
        stage = Path(scratch, "stage")
        stage.mkdir()
        yield stage
        for folder in stage.glob("*.*/"):  # of texts: an earlier compile may have left more of them
            shutil.rmtree(out / folder.name, ignore_errors=True)
        for path in sorted(p for p in stage.rglob("*") if p.is_file()):
            target = out / path.relative_to(stage)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)


def _hashed(source: Any) -> Callable[[], str]:
    """The hash of a source; a file's is worked out beside other work, since that takes a while."""
    if not isinstance(source, str | os.PathLike):
        found = source_hash(source)
        return lambda: found
    pool = ThreadPoolExecutor(1)
    future = pool.submit(source_hash, source)
    pool.shutdown(wait=False)
    return future.result


def source_hash(source: Any) -> str:
    """SHA-256 of a model: of the file, the bytes, the proto as serialised, or the graph's text."""
    if isinstance(source, GraphSource):
        return hashlib.sha256(source.fingerprint()).hexdigest()
    if isinstance(source, Graph):
        digest = hashlib.sha256(print_ir(source.module).encode())
        for found in source.pool.contents(constant.key for constant in source.pool):
            digest.update(found)
        return digest.hexdigest()
    if hasattr(source, "SerializeToString"):
        return hashlib.sha256(source.SerializeToString(deterministic=True)).hexdigest()
    if isinstance(source, bytes | bytearray | memoryview):
        return hashlib.sha256(source).hexdigest()
    return digest_file(source)


def _checked(emit: Sequence[str] | None, options: Options) -> tuple[str, ...]:
    backend, target = resolve(options.target, options.cpu, options.features).host
    unlinked = target.triple in (backend.freestanding | backend.unlinked)
    if emit is None:
        return ("a",) if unlinked else ("so",)
    for kind in emit:
        if kind not in EMITS:
            raise OptionError(f"emit is any of {', '.join(EMITS)}, not '{kind}'")
        if kind == "so" and unlinked:
            raise OptionError(
                f"{target.triple}: there are no shared libraries: emit an archive (a) or an "
                "object (o)"
            )
    if not emit:
        raise OptionError(f"emit names nothing; it is any of {', '.join(EMITS)}")
    return tuple(dict.fromkeys(emit))
