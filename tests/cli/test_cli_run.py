"""run, profile, bench: inputs from files and made up, outputs printed and saved, times."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests import small_models
from tests.cli.cli_runner import Command


def test_run_on_files_and_numbers(cuvil: Command, dynamic: Path, tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "both.npz", x=x, y=x)
    for words in (
        ("-i", f"x={tmp_path}/x.npy", "-i", "y=[[0, 1, 2], [3, 4, 5]]"),
        ("--input", str(tmp_path / "both.npz")),
    ):
        result = cuvil("run", dynamic, *words, "--output", tmp_path / "out.npz")
        assert result.status == 0
        assert "total: float32 [2, 3]  [0, 2, 4, 6, 8, 10]" in result.out
        saved = np.load(tmp_path / "out.npz")
        np.testing.assert_array_equal(saved["twice"], 4 * x)


def test_run_on_made_up_inputs(cuvil: Command, dynamic: Path) -> None:
    words = ("run", dynamic, "--input", "y=zeros", "--input", "random", "--size", "N=4", "--json")
    first, again, other = (cuvil(*words, "--seed", seed).json for seed in (0, 0, 1))
    assert first == again != other
    assert first["total"]["shape"] == [4, 3] and len(first["total"]["values"]) == 4
    ones = cuvil("run", dynamic, "-i", "x=ones", "-i", "y=random:5:6", "--json").json
    assert 6 <= ones["total"]["min"] <= ones["total"]["max"] <= 7


def test_run_on_strings(cuvil: Command, tmp_path: Path) -> None:
    model = small_models.model(
        "twice (string[N] x) => (string[N] y, bool[N] same) "
        "{ y = StringConcat(x, x)  same = Equal(x, y) }"
    )
    model.opset_import[0].version = 21
    path = tmp_path / "twice.onnx"
    path.write_bytes(model.SerializeToString())
    words = ("run", path, "-i", 'x=["é", ""]', "-o", tmp_path / "out.npz")
    assert 'y: string [2]  ["éé", ""]' in cuvil(*words).out
    assert np.load(tmp_path / "out.npz")["y"].tolist() == ["éé", ""]
    assert cuvil("run", path, "-i", f"x={tmp_path}/out.npz").status  # it holds no x
    np.save(tmp_path / "x.npy", np.array(["a"]))
    assert '["aa"]' in cuvil("run", path, "-i", f"x={tmp_path}/x.npy").out
    made = cuvil("run", path, "-i", "random", "--size", "N=3", "--json").json
    assert len(set(made["y"]["values"])) == 3 and made["y"]["dtype"] == "string"
    assert "nor strings as JSON" in cuvil("run", path, "-i", "x=[1]").err


def test_run_takes_what_was_compiled(cuvil: Command, dynamic: Path, tmp_path: Path) -> None:
    cuvil("compile", dynamic, "-o", tmp_path / "out")
    for path in (tmp_path / "out", tmp_path / "out" / "libdynamic.so"):
        assert "twice: float32 [1, 3]" in cuvil("run", path, "-i", "ones").out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "missing input 'x' (float32 [N, 3])"),
        (["-i", "x=ones"], "missing input 'y'"),
        (["-i", "z=ones"], "no input is called 'z'; the inputs are: x, y"),
        (["-i", "x=none.npy", "-i", "ones"], "none.npy: No such file"),
        (["-i", "x=many", "-i", "ones"], "neither random, zeros, ones nor numbers"),
        (["-i", "ones", "-i", "y=[1, 2, 3]"], "'y': expected rank 2, got 1"),
        (["-i", "x=random:2", "-i", "ones"], "expected random:LOW:HIGH"),
        (["-i", "ones", "--size", "N=x"], "--size N=x: expected NAME=NUMBER"),
        (["-i", "ones", "--size", "M=2"], "--size M: no such symbolic dim; there are: N"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_inputs_are_one_line(
    cuvil: Command, dynamic: Path, words: list[str], text: str
) -> None:
    assert text in cuvil.fails("run", dynamic, *words)


def test_a_file_of_another_dtype_or_no_array(cuvil: Command, dynamic: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 3)))
    words = ("-i", f"x={tmp_path}/x.npy", "-i", "ones")
    assert "'x': expected float32, got float64" in cuvil.fails("run", dynamic, *words)
    (tmp_path / "x.npy").write_bytes(b"nothing")
    assert "x.npy" in cuvil.fails("run", dynamic, *words)


def test_a_run_can_be_limited(cuvil: Command, tmp_path: Path) -> None:
    path = small_models.saved(small_models.endless(), tmp_path / "endless.onnx")
    words = ("--input", "ones", "--time-limit", "0.05")
    assert "time" in cuvil.fails("run", path, *words)


def test_profile_writes_trace_events(cuvil: Command, dynamic: Path, tmp_path: Path) -> None:
    result = cuvil("profile", dynamic, "-o", tmp_path / "trace.json", "--runs", "2")
    assert result.status == 0 and "us per run" in result.out
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    launches = [e for e in events if e["ph"] == "X"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {rows[e["tid"]] for e in launches} == {e["name"] for e in launches}
    assert "sum" in " ".join(e["args"]["nodes"] for e in launches)
    assert min(e["ts"] for e in launches) == 0


def test_bench_beside_another_engine(cuvil: Command, dense: Path) -> None:
    words = ("--vs", "onnxruntime,torch", "--seconds", "0.2", "--size", "N=4")
    result = cuvil("bench", dense, *words, "--kernels", "--json")
    assert result.status == 0
    found = result.json
    assert set(found["engines"]) == {"cuvil", "onnxruntime"}
    peer = found["engines"]["onnxruntime"]
    assert peer["ratio"] > 0 and peer["median_ms"] > 0 and peer["max_difference"] < 1e-4
    assert "threads 1" in peer["settings"]
    assert "torch" in found["skipped"]
    (kernel,) = found["kernels"]
    assert kernel["gflops"] > 0 and kernel["share"] == 1
    assert found["inputs"] == {"x": [4, 8]}


def test_bench_for_people_and_of_an_artefact(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    cuvil("compile", dense, "-o", tmp_path / "out")
    result = cuvil("bench", tmp_path / "out", "--seconds", "0.1", "--vs", "onnxruntime")
    assert result.status == 0 and "median ms" in result.out
    assert "takes the ONNX file" in result.err
    assert "no engine 'other'" in cuvil.fails("bench", dense, "--vs", "other")
