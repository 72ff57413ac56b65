"""run --target: models for other machines, under qemu."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.cli_runner import Command

from cuvil.cli.foreign import this_triple
from cuvil.targets.registry import backends
from tests import small_models
from tools.foreign import Machine, zig_environment


def foreign_triples() -> list[str]:
    """Of each installed backend for other machines the first Linux: its default."""
    mine = this_triple()
    served = [backend.triples for backend in backends() if mine not in backend.triples]
    triples = [[t for t in found if "-linux-" in t] for found in served]
    return [found[0] for found in triples if found]


@pytest.fixture(params=foreign_triples())
def triple(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of them that can be run here."""
    if missing := Machine(request.param).lacking():
        pytest.skip(missing)
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        monkeypatch.setenv(name, zig_environment()[name])
    return str(request.param)


def test_a_model_runs_as_it_does_here(
    cuvil: Command, dense: Path, triple: str, tmp_path: Path
) -> None:
    words = ("run", dense, "-i", "random", "--size", "N=3", "--json")
    here, there = cuvil(*words), cuvil(*words, "--target", triple)
    assert there.status == 0, there.err
    got, want = there.json["y"], here.json["y"]
    assert got["shape"] == want["shape"] == [3, 5]
    for row, wanted in zip(got["values"], want["values"], strict=True):
        assert row == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("weights", ["embed", "external"])
@pytest.mark.parametrize("kind", ["so", "a", "o"])
def test_what_was_compiled_runs(
    cuvil: Command, dense: Path, triple: str, tmp_path: Path, kind: str, weights: str
) -> None:
    """It tells its target itself: an archive is linked, a library loaded with a C library."""
    words = ("-o", tmp_path / "out", "--emit", kind, "--weights", weights, "--target", triple)
    assert cuvil("compile", dense, *words).status == 0
    result = cuvil("run", tmp_path / "out", "-i", "ones", "--size", "N=2")
    assert "y: float32 [2, 5]" in result.out, result.err


def test_sequences_and_strings(cuvil: Command, triple: str, tmp_path: Path) -> None:
    text = "f (seq(float[2]) s, string[N] t) => (seq(float[2]) r, string[N] u) "
    made = small_models.model(
        text + "{ z = Constant<value_int = 0>()  a = SequenceAt(s, z)  b = Neg(a)"
        "  r = SequenceConstruct(b, a, b)  u = StringConcat(t, t) }"
    )
    made.opset_import[0].version = 21
    path = tmp_path / "f.onnx"
    path.write_bytes(made.SerializeToString())
    folder = tmp_path / "out"
    words = ("--elements", "s=1", "--target", triple, "--emit", "a")
    assert cuvil("compile", path, "-o", folder, *words).status == 0
    found = cuvil("run", folder, "-i", 't=["\u00e9", ""]', "-i", "[1, 2]", "--json").json
    *numbers, strings = found.values()
    assert [value["values"] for value in numbers] == [[-1, -2], [1, 2], [-1, -2]]
    assert strings["values"] == ["\u00e9\u00e9", ""]


def test_a_failure_is_one_line(cuvil: Command, dense: Path, triple: str) -> None:
    said = cuvil.fails("run", dense, "--target", triple, "-i", "x=[[1, 2, 3]]")
    assert "'x': dim 1 is 3, expected 8" in said
