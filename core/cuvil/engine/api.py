"""`cuvil.compile` and `cuvil.load`: a model to an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuvil.engine.cache_key import Wanted
from cuvil.engine.cache_store import read_json
from cuvil.engine.cached import Progress, compile_cached, compile_uncached
from cuvil.engine.engine import Engine
from cuvil.errors import ArtefactError, InputError, OptionError, UnsupportedError
from cuvil.extents import read_dynamic_shapes
from cuvil.options import Options
from cuvil_runtime import load as load_artefact

Spec = Iterable[tuple[Any, ...]]
WeightsReader = Callable[[str, int, int], bytes]


def compile(
    model: Any,
    *,
    input_spec: Spec | None = None,
    target: str = "cpu",
    cpu: str = "",
    features: str = "",
    precision: str = "fp32",
    opt_level: int | str = 2,
    enable_graph_fusion: bool = True,
    winograd: bool = True,
    variant: str = "",
    memory_plan: str = "static",
    passes: Sequence[str] | None = None,
    disable_rules: Sequence[str] = (),
    enable_rules: Sequence[str] = (),
    dims: Mapping[str, int] | None = None,
    bounds: Mapping[str, tuple[int, int | None]] | None = None,
    dynamic_shapes: Mapping[str, Any] | None = None,
    threads: int | None = None,
    cache: bool = True,
    folder: str | os.PathLike[str] | None = None,
    weights_reader: WeightsReader | None = None,
    name: str = "",
    progress: Progress = lambda stage: None,
) -> Engine:
    """Compiles a model for this machine and loads it; no linker is needed.

    model: the path of an ONNX file, the bytes of one, or a ModelProto. input_spec: rows (name,
    dtype, shape) that fix dims of inputs; a name or None in a shape leaves the dim free. dims:
    symbol -> extent, likewise. bounds: symbol -> (least, greatest or None). dynamic_shapes:
    symbol -> what it may be, such as "128..512, multiple of 8" or (128, 512, 8), or input ->
    {axis: such}; what a node or a call does not keep is a ShapeMismatchError. precision: "fp32"
    computes in the model's own types; "bf16" multiplies matrices and images of float32 rounded to
    bfloat16, and sums in float32: about three digits are right. opt_level: 0 to 3 or
    "O0" to "O3". winograd: whether convolutions by few taps may be computed with fewer products:
    at about twice the rounding error of a plain sum, and an infinity or NaN in the image may spoil
    neighbours of the results that it reaches. variant: the backend's build to use (see `cuvil
    targets`), by default the best that runs here. passes: names of rule groups or rules (None: all
    that are on). threads: at most so many per run; None is CUVIL_NUM_THREADS, else the cpus that
    the process may use. cache: whether an earlier compile of the same may be used, and this one
    kept. folder: where external data lies, by default beside the file; weights_reader(location,
    offset, length) hands it out instead. progress: told each stage as it begins.

    Raises ModelError, UnsupportedError, TargetError, OptionError and others of cuvil.Error.
    """
    options = Options(
        target=target, cpu=cpu, features=features, precision=precision, opt_level=opt_level,  # type: ignore[arg-type]
        graph_fusion=enable_graph_fusion, passes=None if passes is None else tuple(passes),
        disable_rules=tuple(disable_rules), enable_rules=tuple(enable_rules), name=name,
        disable_kernels=() if winograd else ("winograd",), variant=variant,
        dims=dict(dims or {}), bounds=dict(bounds or {}),
        dynamic=read_dynamic_shapes(dynamic_shapes),
    )  # fmt: skip
    if memory_plan != "static":
        raise OptionError(f"memory_plan '{memory_plan}' is unknown; there is 'static'")
    place = None if folder is None else os.fspath(folder)
    wanted = Wanted(options, spec_rows(input_spec or ()), place, weights_reader)
    build = compile_cached if cache and weights_reader is None else compile_uncached
    return build(checked_source(model), wanted, threads, progress)


def checked_source(model: Any) -> Any:
    """The model, when it is of a kind that has a front end. Raises InputError, UnsupportedError."""
    if isinstance(model, str | os.PathLike | bytes | bytearray | memoryview):
        return model
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        return model
    kind = type(model).__name__
    if hasattr(model, "state_dict") or callable(model):
        raise UnsupportedError(
            f"a {kind} cannot be compiled yet: export it to ONNX first (torch.onnx.export)"
        )
    raise InputError(f"a model is a path, the bytes of an ONNX file or a ModelProto, not a {kind}")


def spec_rows(spec: Spec) -> tuple[tuple[str, str, tuple[int | str | None, ...]], ...]:
    """Rows of an input_spec as plain data; dtypes of numpy and torch by their names."""
    return tuple(_row(row) for row in spec)


def _row(row: Sequence[Any]) -> tuple[str, str, tuple[int | str | None, ...]]:
    try:
        name, dtype, shape = row
        extents = tuple(d if d is None or isinstance(d, str) else int(d) for d in shape)
    except (TypeError, ValueError):
        raise InputError(
            f"input_spec: expected rows (name, dtype, shape), such as ('x', 'float32', (1, 3)), "
            f"not {row!r}"
        ) from None
    text = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    return str(name), text.removeprefix("torch.") if dtype is not None else "", extents


def load(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    variant: str | None = None,
    weights: Any = None,
    weights_reader: Callable[[int, int], Any] | None = None,
    name: str | None = None,
) -> Engine:
    """Loads what `cuvil compile` or `cuvil.Compiler` wrote: a `.so`, a `.o`, or their folder.

    Load only files that you trust: they are code. threads: as for `compile`. variant: overrides
    the choice by cpu. weights: path or buffer of the weights, by default the file beside the
    library; weights_reader(offset, count) hands them out. name: which of several models in a file.

    Raises ArtefactError, TargetError or OptionError.
    """
    chosen = weights if weights_reader is None else weights_reader
    return Engine(
        load_artefact(
            artefact_path(path), weights=chosen, threads=threads, variant=variant, name=name
        )
    )


def artefact_path(path: str | os.PathLike[str]) -> Path:
    """The library or object that a path or a folder stands for. Raises ArtefactError."""
    place = Path(path)
    if not place.is_dir():
        return place
    manifest = read_json(place / "manifest.json") or {}
    others = manifest.get("custom_libraries", ())  # lie beside the model's own
    listed = [
        place / str(f)
        for f in manifest.get("files", ())
        if str(f).endswith((".so", ".o")) and f not in others
    ]
    for pattern in ("*.so", "*.o"):
        found = [p for p in listed if p.match(pattern)] or sorted(place.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(p.name for p in found)
            raise ArtefactError(f"{place} holds several models: {names}; give one's path")
    raise ArtefactError(f"{place}: no .so or .o of a compiled model lies here")
