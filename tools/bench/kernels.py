"""Times every row of the table of fast kernels, those of installed backends and core's.

    python -m tools.bench.kernels [KIND...]

Each of a row's cases is compiled for this machine as a model of one op and run on one thread.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import cuvil.ops  # noqa: F401  registers the primitives
from cuvil.codegen.kernel_table import CORE_ROWS, KernelCase, KernelRow
from cuvil.engine.engine import Engine
from cuvil.engine.front_door import compile_engine
from cuvil.ir.build import Builder
from cuvil.ir.dtypes import dtype
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.options import Options
from cuvil.targets.registry import backends

Array = np.ndarray[Any, Any]
_SECONDS = 0.2


def table() -> list[KernelRow]:
    """All rows: backends' in front of core's."""
    return [row for backend in backends() for row in backend.kernels] + list(CORE_ROWS)


def case_arrays(case: KernelCase) -> list[Array]:
    """Seeded operands."""
    rng = np.random.default_rng(7)
    if case.dtype == "f32":
        return [rng.standard_normal(shape).astype(np.float32) for shape in case.operands]
    kind = dtype(case.dtype).numpy
    limits = np.iinfo(kind)
    return [rng.integers(limits.min, limits.max, x, kind, endpoint=True) for x in case.operands]


def case_graph(case: KernelCase, arrays: list[Array]) -> Graph:
    """A graph of the one op on inputs x0, x1, ..., but for operands that are constants."""
    free = [i for i in range(len(arrays)) if i not in case.constants]
    kinds = {f"x{i}": TensorType.of(case.operands[i], case.dtype) for i in free}
    graph = new_graph("case", kinds, Pool())
    b = Builder(graph.block, graph.pool, "case")
    given = iter(graph.inputs)
    operands = [b.const(a) if i in case.constants else next(given) for i, a in enumerate(arrays)]
    return finish_graph(graph, {"y": b.emit(case.op, operands, **case.attrs)})


def case_feeds(case: KernelCase, arrays: list[Array]) -> dict[str, Array]:
    """What the graph takes."""
    return {f"x{i}": a for i, a in enumerate(arrays) if i not in case.constants}


def milliseconds(engine: Engine, feeds: dict[str, Array]) -> float:
    """The median of runs over a fixed time."""
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        engine.run(None, feeds)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e3


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    wanted = parser.parse_args().kinds
    for row in table():
        for case in row.cases if not wanted or row.kind in wanted else ():
            arrays = case_arrays(case)
            engine = compile_engine(case_graph(case, arrays), Options(), threads=1)
            took = milliseconds(engine, case_feeds(case, arrays))
            print(f"{row.kind:12} {took:9.4f} ms  {case.op} {case.operands}")


if __name__ == "__main__":
    main()
