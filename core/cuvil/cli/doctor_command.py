"""`cuvil doctor`: whether this installation works, and why it does what it does."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = ("cuvil", "cuvil-runtime", "numpy", "onnx", "onnx-ir", "xdsl", "llvmlite", "ml_dtypes")
OPTIONAL = ("ziglang", "onnxruntime", "openvino", "torch")


def doctor(
    artefact: Annotated[
        str | None, typer.Argument(help="a compiled .so, .o or folder: are its files sound?")
    ] = None,
    as_json: arg.Json = False,
) -> None:
    """Looks whether the installation works, and perhaps an artefact.

    Reports on packages, backends, the cpu, linkers, the cache and threads, and compiles and runs a
    model of one node. The exit status is 1 when that does not work, or when the artefact's files
    are not those that were written.
    """
    from cuvil.cli.console import print_json

    checks: dict[str, Callable[[], Any]] = {
        "python": lambda: f"{platform.python_version()} at {sys.executable}",
        "system": lambda: f"{platform.system()} {platform.machine()}, {platform.release()}",
        "packages": lambda: versions(PACKAGES),
        "optional packages": lambda: versions(OPTIONAL),
        "backends": backends,
        "cpu": cpu,
        "linkers": linkers,
        "cache": cache,
        "threads": threads,
        "compile and run": trial,
    }
    if artefact is not None:
        checks["artefact"] = lambda: sound(artefact)
    report = {name: _checked(check) for name, check in checks.items()}
    needed = [report.get(name, "") for name in ("compile and run", "artefact")]
    good = not any(str(value).startswith("error") for value in needed)
    if as_json:
        print_json(report | {"works": good})
    else:
        for name, value in report.items():
            text = (
                ", ".join(f"{k} {v}" for k, v in value.items())
                if isinstance(value, dict)
                else value
            )
            typer.echo(f"{name + ':':19}{text}")
    raise typer.Exit(int(not good))


def _checked(check: Callable[[], Any]) -> Any:
    try:
        return check()
    except Exception as error:  # whatever is broken is what this command reports
        return f"error: {error}"


def versions(names: tuple[str, ...]) -> dict[str, str]:
    """Package -> version, or "missing"."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def backends() -> dict[str, str]:
    """Backend -> version."""
    from cuvil.targets.registry import scan

    loaded, failed = scan()
    if not loaded:
        why = [str(error) for error in failed] or ["none is installed: pip install one"]
        raise LookupError("; ".join(why))
    return {b.name: b.version for b in loaded} | {f"not usable {i}": str(e) for i, e in
                                                  enumerate(failed, 1)}  # fmt: skip


def cpu() -> str:
    """This machine as a target, and the variant that runs on it."""
    from cuvil.engine.front_door import runnable_variants
    from cuvil.targets.registry import find

    backend, target = find("cpu")
    best = next(v for v in runnable_variants(backend, target) if not v.products)
    return f"{target}; engines use variant {best.name}"


def linkers() -> str:
    """What can make a shared library, the preferred one first."""
    from cuvil.aot.link import linkers

    names = [linker.name for linker in linkers()]
    return ", ".join(names) or "none: only .o and .a can be made; pip install ziglang"


def cache() -> str:
    """Where the cache is and what it holds."""
    from cuvil.cli.console import size_text
    from cuvil.engine.cache_store import Store, default_root, size_bound

    store = Store(default_root())
    entries = store.entries()
    used = size_text(sum(e.bytes for e in entries))
    return f"{store.root}, {len(entries)} entries, {used} of at most {size_text(size_bound())}"


def threads() -> str:
    """How many threads a run uses, and what decided that."""
    from cuvil.errors import OptionError
    from cuvil_runtime import default_threads

    count, allowed, present = default_threads(), len(os.sched_getaffinity(0)), os.cpu_count() or 1
    if not count:
        said = os.environ["CUVIL_NUM_THREADS"]
        raise OptionError(f"CUVIL_NUM_THREADS is '{said}': expected a number of threads, or none")
    if os.environ.get("CUVIL_NUM_THREADS"):
        return f"{count}, from CUVIL_NUM_THREADS"
    if count < allowed:
        return f"{count}, from the cgroup's cpu quota ({allowed} cpus allowed, {present} present)"
    if allowed < present:
        return f"{count}, from the process's cpu affinity ({present} present)"
    return f"{count}, all cpus"


def sound(artefact: str) -> str:
    """What is known of an artefact's files; it is loaded, too."""
    from cuvil.aot.check import check_artefact
    from cuvil.engine.loading import load

    found = check_artefact(artefact)
    load(artefact).close()
    return found


def trial() -> str:
    """Compiles x + x without the cache, runs it, and says how long that took."""
    import time

    import numpy as np
    import onnx

    import cuvil

    start = time.perf_counter()
    text = '<ir_version: 8, opset_import: ["": 17]> m (float[4] x) => (float[4] y) {y = Add(x, x)}'
    engine = cuvil.compile(onnx.parser.parse_model(text), cache=False)
    x = np.arange(4, dtype=np.float32)
    if not np.array_equal(engine(x), x + x):
        raise ArithmeticError("x + x came out wrong")
    return f"works, {time.perf_counter() - start:.2f} s"
