"""`manifest.json`: what a compiled model takes and gives, its origin and what it weighs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from cuvil.codegen.objects import functions
from cuvil.ir.dims import Dim
from cuvil.ir.groups import Groups
from cuvil.pipeline import Built
from cuvil.plan.plan import Plan, Port
from cuvil.plan.templates.winograd import report
from cuvil.version import PRODUCER

FORMAT = 1
_PARTS = {"model": "program", "runtime": "runtime", "strings": "runtime"}  # units of no variant


def manifest(
    built: Built, model: Mapping[str, str], files: Iterable[str], libraries: Iterable[str] = ()
) -> dict[str, Any]:
    """The manifest as plain data. model: name and hash of the source. files: names in the folder.
    libraries: those of them that are a custom operator's.

    inputs and outputs are tensors; "ports" is there where a caller sees some of them as sequences
    or optionals (`ir.groups`). Dims are numbers or expressions of the symbols. code_bytes: machine
    code per variant, of the program that launches kernels and of the runtime; of a kernel, its own
    functions (tiles that kernels share count for the variant only). winograd: of a kernel of fewer
    products, its tile and how much worse it rounds than a running sum. memory_bytes: what a run
    needs of the caller's, where there is no operating system.
    """
    plan, target = built.plan, built.target
    code = code_sizes(built)
    return {
        "format": FORMAT,
        "name": plan.name,
        "producer": PRODUCER,
        "build_id": built.code.build_id.hex(),
        "model": dict(model),
        "target": {
            "triple": target.triple,
            "cpu": target.cpu,
            "features": list(target.features),
        },
        "variants": [{"name": v.name, "requires": list(v.requires)} for v in built.variants],
        "inputs": [_port(p) for p in plan.inputs],
        "outputs": [_port(p) for p in plan.outputs],
        **_groups(plan.grouped),
        "symbols": [
            {"name": name, "min": least, "max": most, **_multiple(plan, name)}
            for name, (least, most) in zip(plan.symbols, plan.bounds, strict=True)
        ],
        **({"specialized": [dict(row) for row in plan.special]} if plan.special else {}),
        "arena_bytes": _dim(plan.arena_bytes),
        **({"memory_bytes": built.code.memory_bytes} if built.code.memory_bytes else {}),
        "weights_bytes": plan.weights_bytes,
        "weights_file": built.weights_file,
        "devices": [
            {"name": d.name, "arena_bytes": _dim(d.arena_bytes), "weights_bytes": d.weights_bytes}
            for d in plan.devices
        ],
        "custom": [
            {"operator": c.operator, "symbol": c.symbol, "prototype": c.prototype}
            for c in built.calls
        ],
        "custom_libraries": sorted(libraries),
        "code_bytes": code.pop(""),
        "kernels": [
            {"name": name, "nodes": nodes, "code_bytes": code.get(name, {}), **_tiles(plan, name)}
            for name, nodes in kernel_nodes(plan.sites).items()
        ],
        "files": sorted(files),
    }


def _tiles(plan: Plan, kernel: str) -> dict[str, Any]:
    found = report(plan.kernels[kernel]) if kernel in plan.kernels else None
    return {"winograd": found} if found else {}


def manifest_text(data: Mapping[str, Any]) -> str:
    """The manifest as a file's text."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def kernel_nodes(sites: Iterable[str]) -> dict[str, list[str]]:
    """Kernel -> the model's nodes that it computes, over all its launches."""
    found: dict[str, dict[str, None]] = {}
    for site in sites:
        kernel, _, nodes = site.partition("\t")
        if kernel in ("check", "bind"):  # sites of errors, not of kernels
            continue
        found.setdefault(kernel, {}).update(dict.fromkeys(filter(None, nodes.split(", "))))
    return {kernel: list(nodes) for kernel, nodes in found.items()}


def code_sizes(built: Built) -> dict[str, dict[str, int]]:
    """Bytes of code: kernel -> variant -> bytes; under "" the totals, as in `manifest`."""
    totals = {"program": 0, "runtime": 0}
    sizes: dict[str, dict[str, int]] = {"": totals}
    for unit, data in zip(built.code.units, built.objects, strict=True):
        variant = unit.name.partition(".")[0]
        code, functions = _functions(data, f"{built.plan.name}.")
        if unit.name in _PARTS:
            totals[_PARTS[unit.name]] += code
            continue
        totals[variant] = totals.get(variant, 0) + code
        for name, size in functions:
            kernel = sizes.setdefault(name.split(".")[1], {})
            kernel[variant] = kernel.get(variant, 0) + size
    return sizes


def _functions(data: bytes, prefix: str) -> tuple[int, list[tuple[str, int]]]:
    """Bytes of code in an object; the functions in it under `prefix` (taken off), with sizes."""
    code, found = functions(data)
    return code, [(n.removeprefix(prefix), size) for n, size in found if n.startswith(prefix)]


def _port(port: Port) -> dict[str, Any]:
    dims = [_dim(d) for d in port.type.dims]
    return {"name": port.name, "dtype": port.type.dtype.name, "dims": dims}


def _multiple(plan: Plan, name: str) -> dict[str, int]:
    """What divides a symbol's values, where a caller promised it."""
    step = plan.declared[name].multiple if name in plan.declared else 1
    return {"multiple": step} if step > 1 else {}


def _groups(groups: Groups | None) -> dict[str, Any]:
    if groups is None:
        return {}
    sides = {"inputs": groups.inputs, "outputs": groups.outputs}
    return {"ports": {side: [asdict(g) for g in found] for side, found in sides.items()}}


def _dim(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else str(dim)
