"""Contractions reach the shares of a cpu's multiplications that backends' files ask for."""

from __future__ import annotations

import pytest

from cuvil.targets.registry import backends
from tools.bench.cross import Bench, bench_files, missed, products, read, rows
from tools.bench.hot_loops import analyser

BENCHES = [(name, bench) for name, path in bench_files().items() for bench in read(path)]


@pytest.mark.skipif(analyser() is None, reason="llvm-mca (Debian: llvm-22) is not installed")
@pytest.mark.parametrize(("name", "bench"), BENCHES, ids=[b.triple for _, b in BENCHES])
def test_contractions_reach_their_goals(name: str, bench: Bench) -> None:
    (backend,) = (b for b in backends() if b.name == name)
    found = list(rows(backend, bench, products))
    assert {cpu for row in found for cpu in row.shares} == set(bench.cpus)
    assert [problem for row in found for problem in missed(row, bench)] == []
