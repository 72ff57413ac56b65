"""`cuvil inspect`: what a model, or what was compiled from one, holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

GREATEST = (1 << 63) - 1  # what the runtime says of a symbol without a bound
LONGEST = 60  # characters of an expression that people may want to read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def inspect(
    model: arg.ModelOrArtefact,
    target: arg.Target = "cpu",
    cpu: arg.Cpu = "",
    features: arg.Features = "",
    dim: arg.Dim = None,
    opt_level: arg.OptLevel = "2",
    custom: arg.Custom = None,
    products: Annotated[
        bool,
        typer.Option(
            "--products", help="which convolutions and matrix products run on bytes, and why not"
        ),
    ] = False,
    as_json: arg.Json = False,
) -> None:
    """Shows inputs, outputs, memory and code."""
    from cuvil.cli.console import print_json, progress
    from cuvil.cli.models import is_artefact

    with progress() as stages:
        if is_artefact(model):
            given = {"--target": target != "cpu", "--cpu": cpu, "--features": features,
                     "--opt-level": opt_level != "2", "--products": products}  # fmt: skip
            refuse_compiling(model, [name for name, said in given.items() if said])
            data = at_extents(artefact_data(model), arg.parse_sizes("--dim", dim))
        else:
            options = arg.options_of(
                target=target, cpu=cpu, features=features, dim=dim, opt_level=opt_level
            )
            read = products_of if products else model_data
            data = read(model, options, stages)
    if as_json:
        print_json(data)
    elif products:
        tell_products(data["products"])
    else:
        tell(data)


def products_of(path: str, options: Any, progress: Any) -> dict[str, Any]:
    """What the products of an ONNX file would multiply."""
    from cuvil.cli.products import products_data

    return {"name": path, "products": products_data(path, options, progress)}


def tell_products(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints them for people."""
    from cuvil.cli.console import print_table

    header = ("op", "multiplies", "node", "why not bytes")
    print_table(header, [(r["kind"], r["factors"], r["node"], r["reason"]) for r in rows])
    count = sum(r["of_bytes"] for r in rows)
    typer.echo(f"{count} of {len(rows)} products multiply bytes")


def refuse_compiling(path: str, names: Sequence[str]) -> None:
    """OptionError where options of a compile are given and there is nothing to compile."""
    from cuvil.errors import OptionError

    if names:
        raise OptionError(f"{path} is compiled already: {', '.join(names)} cannot change it")


def at_extents(data: dict[str, Any], dims: Mapping[str, int]) -> dict[str, Any]:
    """The same with extents in place of symbols, in shapes and in what depends on them.

    Raises OptionError for a symbol that there is none of, or an extent out of its bounds.
    """
    from cuvil.errors import OptionError
    from cuvil.ir.dims import parse_dim, substitute

    bounds = {s["name"]: (s["min"], s["max"]) for s in data["symbols"]}
    for name, extent in dims.items():
        if name not in bounds:
            there = ", ".join(bounds) or "none"
            raise OptionError(f"--dim {name}: {data['name']} has no such symbol; it has {there}")
        least, most = bounds[name]
        if extent < least or (most is not None and extent > most):
            raise OptionError(f"--dim {name}={extent}: it has to be {_range(least, most)}")

    def fixed(dim: int | str | None) -> int | str | None:
        found = substitute(parse_dim(dim), dims) if dims and isinstance(dim, str) else dim
        return found if found is None or isinstance(found, int) else str(found)

    def port(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "dims": [fixed(d) for d in row["dims"]]}

    return data | {
        "inputs": [port(p) for p in data["inputs"]],
        "outputs": [port(p) for p in data["outputs"]],
        "symbols": [s for s in data["symbols"] if s["name"] not in dims],
        "arena_bytes": fixed(data["arena_bytes"]),
    }


def model_data(path: str, options: Any, progress: Any) -> dict[str, Any]:
    """What a compile of an ONNX file would give, as its manifest says it."""
    from cuvil.aot.manifest import manifest
    from cuvil.frontends.onnx import import_model
    from cuvil.pipeline import compile_graph

    progress("import")
    graph = import_model(path, dims=dict(options.dims))
    return manifest(compile_graph(graph, options, progress=progress), {"name": graph.name}, ())


def artefact_data(path: str) -> dict[str, Any]:
    """The manifest beside a compiled file, or what the file itself tells; and its symbols."""
    from cuvil.engine.cache_store import read_json
    from cuvil.engine.loading import artefact_path
    from cuvil.errors import ArtefactError

    archives = sorted(Path(path).glob("*.a"))  # of a folder with nothing that can be loaded
    try:
        file = Path(artefact_path(path))
    except ArtefactError:
        if len(archives) != 1:
            raise
        file = archives[0]
    data = read_json(file.parent / "manifest.json")
    if data is None or file.name not in data.get("files", ()):
        data = loaded_data(file)
    return data | file_data(file)


def loaded_data(file: Path) -> dict[str, Any]:
    """What the runtime tells of a compiled file without a manifest; it must run on this cpu."""
    from cuvil.engine.loading import load

    with load(file) as engine:
        model = engine.model
        return {
            "name": model.name,
            "producer": model.producer,
            "variants": [{"name": name, "requires": []} for name in model.variants],
            "inputs": [t._asdict() for t in model.inputs],
            "outputs": [t._asdict() for t in model.outputs],
            "symbols": [{"name": n, "min": a, "max": b} for n, (a, b) in model.symbols.items()],
            "arena_bytes": model.arena_bytes,
            "weights_bytes": model.weights_bytes,
        }


def file_data(file: Path) -> dict[str, Any]:
    """Sizes and symbols of an object or library, or of all in an archive. Raises ArtefactError."""
    from cuvil.codegen.elf_archive import MAGIC, read_archive
    from cuvil.codegen.objects import functions, undefined_symbols, visible_globals

    data = file.read_bytes()
    sources = read_archive(data) if data.startswith(MAGIC) else [data]
    exported = {name for source in sources for name in visible_globals(source)}
    needed = {name for source in sources for name in undefined_symbols(source)}
    return {
        "file": str(file),
        "file_bytes": len(data),
        "text_bytes": sum(functions(source)[0] for source in sources),
        "undefined": sorted(needed - exported),
        "exported": sorted(exported),
    }


def tell(data: Mapping[str, Any]) -> None:
    """Prints it for people."""
    from cuvil.cli.console import print_table, shape_text, size_text

    target = data.get("target", {})
    typer.echo(f"{data['name']}  {data.get('producer', '')}  {target.get('triple', '')}".rstrip())
    typer.echo(f"  variants: {', '.join(v['name'] for v in data['variants'])}")
    for kind in ("inputs", "outputs"):
        for port in data[kind]:
            typer.echo(f"  {kind[:-1]} {port['name']}: {port['dtype']} {shape_text(port['dims'])}")
    for symbol in data["symbols"]:
        step = f", a multiple of {symbol['multiple']}" if "multiple" in symbol else ""
        typer.echo(f"  symbol {symbol['name']}: {_range(symbol['min'], symbol['max'])}{step}")
    for row in data.get("specialized", ()):
        typer.echo(f"  code for {', '.join(f'{name} = {value}' for name, value in row.items())}")
    weights = size_text(data["weights_bytes"])
    typer.echo(f"  arena: {_arena(data['arena_bytes'])}")
    if "memory_bytes" in data:
        typer.echo(f"  memory of a run: {size_text(data['memory_bytes'])}")
    typer.echo(f"  weights: {weights}{_weights_place(data)}")
    for variant, size in data.get("code_bytes", {}).items():
        typer.echo(f"  code of {variant}: {size_text(size)}")
    if "file" in data:
        typer.echo(f"  file: {data['file']}, {size_text(data['file_bytes'])}")
        typer.echo(f"  imports: {', '.join(data['undefined']) or 'nothing'}")
        typer.echo(f"  exports: {', '.join(data['exported'])}")
    for call in data.get("custom", ()):
        typer.echo(f"  calls, for {call['operator']}: {call['prototype']}")
    kernels = data.get("kernels", ())
    if kernels:
        typer.echo("")
        rows = [
            (max(k["code_bytes"].values(), default=0), k["name"], ", ".join(k["nodes"]))
            for k in kernels
        ]
        print_table(("code bytes", "kernel", "nodes"), rows)
    for kernel in kernels:
        if fewer := kernel.get("winograd"):
            tile, taps = ("x".join(map(str, fewer[key])) for key in ("tile", "taps"))
            typer.echo(f"  {kernel['name']}: {tile} results of {taps} taps by fewer products, "
                       f"rounds {fewer['error_growth']} times as a running sum")  # fmt: skip


def _range(least: int, most: int | None) -> str:
    return f"{least} to {most}" if most is not None and most < GREATEST else f"{least} or more"


def _arena(size: int | str) -> str:
    from cuvil.cli.console import size_text

    if isinstance(size, int):
        return size_text(size)
    return size if len(size) <= LONGEST else "depends on the symbols (--json says how)"


def _weights_place(data: Mapping[str, Any]) -> str:
    place = data.get("weights_file")
    return f" in {place}" if place else ""
