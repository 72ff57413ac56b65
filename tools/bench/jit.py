"""Times `cuvil.jit` beside the interpreter, and numba where it is installed.

    python -m tools.bench.jit            a table: microseconds per call, and how often faster
    python -m tools.bench.jit names nms  these only
    python -m tools.bench.jit --floors   what Python's objects cost in C by hand (`jit_floor.c`)

numba is asked in another environment, whose python CUVIL_NUMBA_PYTHON names, or in this one.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.bench import jit_functions

REPEATS, LEAST_S = 5, 0.05


def best_time(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """Seconds per call: the best of a few runs."""
    function(*args)
    count, spent = 1, 0.0
    while True:
        start = time.perf_counter()
        for _ in range(count):
            function(*args)
        spent = time.perf_counter() - start
        if spent >= LEAST_S:
            break
        count = max(count * 2, int(count * LEAST_S / max(spent, 1e-9)))
    times = [spent / count]
    for _ in range(REPEATS - 1):
        start = time.perf_counter()
        for _ in range(count):
            function(*args)
        times.append((time.perf_counter() - start) / count)
    return min(times)


def measure(compiler: Callable[[Any], Any], names: list[str]) -> dict[str, float]:
    """Seconds per call of the functions that a compiler takes."""
    found = {}
    for name in names:
        case = jit_functions.CASES[name]
        try:
            found[name] = best_time(compiler(case.function), case.arguments())
        except Exception as error:
            print(f"{name}: {type(error).__name__}", file=sys.stderr)
    return found


def measure_numba(names: list[str]) -> dict[str, float]:
    """The same in a process that has numba; empty where there is none."""
    python = os.environ.get("CUVIL_NUMBA_PYTHON", sys.executable)
    code = (
        "import json, sys, numba; from tools.bench import jit; "
        "print(json.dumps(jit.measure(numba.njit, sys.argv[1:])))"
    )
    done = subprocess.run(
        [python, "-W", "ignore", "-c", code, *names],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else {}


def floor_module(folder: Path) -> Any:
    """The module of `jit_floor.c`, built by `cc` in a folder."""
    source, made = Path(__file__).with_name("jit_floor.c"), folder / "jit_floor.so"
    include = sysconfig.get_paths()["include"]
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(made), "-lm"]
    subprocess.run(command, check=True)
    loader = importlib.machinery.ExtensionFileLoader("jit_floor", str(made))
    spec = importlib.util.spec_from_file_location("jit_floor", made, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def print_floors() -> None:
    """The table of what C by hand takes."""
    arguments = {name: jit_functions.CASES[name].arguments() for name in ("names", "norms")}
    taken = {"names": "names", "read_names": "names", "norms": "norms", "norm_sum": "norms"}
    with tempfile.TemporaryDirectory() as folder:
        module = floor_module(Path(folder))
        for name, case in {**taken, "floats": "norms"}.items():
            print(f"{name:<12}{best_time(getattr(module, name), arguments[case]) * 1e6:>12.2f} us")


def main() -> None:
    """Prints the table."""
    import cuvil

    if sys.argv[1:] == ["--floors"]:
        print_floors()
        return
    names = sys.argv[1:] or list(jit_functions.CASES)
    ours, plain = measure(cuvil.jit, names), measure(lambda f: f, names)
    numba = measure_numba(names)
    print(f"{'function':<12}{'cuvil us':>12}{'python us':>12}{'numba us':>12}{'faster':>9}")
    for name in names:
        other = f"{numba[name] * 1e6:.2f}" if name in numba else "-"
        print(
            f"{name:<12}{ours[name] * 1e6:>12.2f}{plain[name] * 1e6:>12.2f}{other:>12}"
            f"{plain[name] / ours[name]:>8.1f}x"
        )


if __name__ == "__main__":
    main()
