"""compile, inspect and check: files, JSON, and one clear line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import small_models
from tests.cli.cli_runner import Command


def test_compile_writes_a_folder_that_inspect_reads(
    cuvil: Command, dense: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = cuvil("compile", dense, "-o", out, "--name", "net", "--dim", "N=2", "-O", "1")
    assert result.status == 0 and "net: " in result.out and "libnet.so" in result.out
    assert {"libnet.so", "net.h", "manifest.json"} <= {p.name for p in out.iterdir()}
    data = cuvil("inspect", out, "--json").json
    assert data["name"] == "net"
    assert data["inputs"] == [{"name": "x", "dtype": "f32", "dims": [2, 8]}]
    assert all(name.startswith("net_") for name in data["exported"])
    text = cuvil("inspect", out).out
    assert "input x: f32 [2, 8]" in text and "code bytes  kernel" in text


def test_an_artefact_without_its_manifest_tells_what_the_runtime_knows(
    cuvil: Command, dense: Path, tmp_path: Path
) -> None:
    cuvil("compile", dense, "-o", tmp_path / "libnet.so")
    (tmp_path / "manifest.json").unlink()
    data = cuvil("inspect", tmp_path / "libnet.so", "--json").json
    assert data["inputs"][0]["dims"] == ["N", 8]
    assert data["symbols"][0]["name"] == "N"


def test_inspect_puts_extents_into_what_is_compiled(
    cuvil: Command, dense: Path, tmp_path: Path
) -> None:
    cuvil("compile", dense, "-o", tmp_path / "libnet.so", "--bound", "N=1:50")
    library = tmp_path / "libnet.so"
    for _ in range(2):  # with its manifest, and without
        data = cuvil("inspect", library, "--dim", "N=4", "--json").json
        assert data["inputs"][0]["dims"] == [4, 8] and data["outputs"][0]["dims"] == [4, 5]
        assert data["symbols"] == []
        (tmp_path / "manifest.json").unlink(missing_ok=True)
    assert "has no such symbol; it has N" in cuvil.fails("inspect", library, "--dim", "M=4")
    assert "it has to be 1 to 50" in cuvil.fails("inspect", library, "--dim", "N=51")
    said = cuvil.fails("inspect", library, "--cpu", "x86-64", "-O", "1")
    assert "--cpu, --opt-level cannot change it" in said


def test_compile_is_told_what_a_sequence_holds(cuvil: Command, tmp_path: Path) -> None:
    made = small_models.model(
        "m (seq(float[?]) s, optional(float[2]) o) => (float[?] y, bool there) "
        "<int64 zero = {0}> { y = SequenceAt(s, zero)  there = OptionalHasElement(o) }"
    )
    path, out = small_models.saved(made, tmp_path / "m.onnx"), tmp_path / "out"
    assert "--elements s=3" in cuvil.fails("compile", path, "-o", out)
    assert "--elements o=1" in cuvil.fails("compile", path, "-o", out, "--elements", "s=2")
    words = ("--elements", "s=2", "--elements", "o=0")
    assert "--elements s=3" in cuvil("check", path).out
    assert cuvil("check", path, *words).status == 0
    assert cuvil("compile", path, "-o", out, *words).status == 0
    text = (out / "m.h").read_text()
    assert "input s: a sequence of 2: float [s_0_0], float [s_1_0]" in text
    assert "input o: an optional, compiled as not there" in text


def test_compile_emits_what_is_asked_for(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    words = ("--emit", "o,mlir", "--emit", "llvm", "--weights", "external", "--threads", 1)
    result = cuvil("compile", dense, "-o", tmp_path / "out", *words, "--json")
    assert result.status == 0
    assert {"o", "mlir", "llvm", "weights", "header"} <= set(result.json["files"])
    assert result.json["manifest"]["weights_file"] == "dense.weights"


def test_inspect_compiles_an_onnx_file_to_look_at_it(cuvil: Command, dense: Path) -> None:
    data = cuvil("inspect", dense, "--json").json
    assert data["outputs"][0]["dims"] == ["N", 5]
    assert data["kernels"][0]["nodes"]


def test_inspect_says_how_convolutions_by_fewer_products_round(
    cuvil: Command, tmp_path: Path
) -> None:
    made = small_models.model(
        "m (float[1, 16, 12, 12] x) => (float[1, 16, 12, 12] y) <int64[4] s = {16, 16, 5, 5}> "
        "{ w = ConstantOfShape(s)  y = Conv<pads = [2, 2, 2, 2]>(x, w) }"
    )
    path = small_models.saved(made, tmp_path / "m.onnx")
    rows = cuvil("inspect", path, "--json").json["kernels"]
    assert [row["winograd"] for row in rows if "winograd" in row] == [
        {"tile": [4, 4], "taps": [5, 5], "error_growth": 3.81}
    ]
    assert (
        "4x4 results of 5x5 taps by fewer products, rounds 3.81 times" in cuvil("inspect", path).out
    )


def test_check_says_yes(cuvil: Command, dense: Path) -> None:
    result = cuvil("check", dense)
    assert (result.status, "every operator is supported" in result.out) == (0, True)
    assert cuvil("check", dense, "--json").json == {
        "model": str(dense), "supported": True, "problems": [],
    }  # fmt: skip


def test_check_lists_everything_at_once(cuvil: Command, tmp_path: Path) -> None:
    made = small_models.model(
        "odd (float[4] x) => (float[4] z) { y = Undreamt(x)  w = Undreamt(y)  z = Unheard(w) }"
    )
    for number, node in enumerate(made.graph.node):
        node.name = f"node{number}"
    path = small_models.saved(made, tmp_path / "odd.onnx")
    result = cuvil("check", path)
    assert result.status == 1
    assert "Undreamt (ai.onnx opset 18), 2 nodes" in result.out
    assert "nodes: node0, node1" in result.out and "way out: " in result.out
    rows = cuvil("check", path, "--json").json["problems"]
    assert [(row["op"], row["count"]) for row in rows] == [("Undreamt", 2), ("Unheard", 1)]
    assert "Undreamt" in cuvil.fails("compile", path, "-o", tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--target", "pdp11"], "unknown target 'pdp11'"),
        (["--cpu", "486dx"], "unknown cpu '486dx'"),
        (["--features", "fast"], "needs a sign"),
        (["--dim", "N"], "--dim N: expected NAME=NUMBER"),
        (["--dim", "M=1"], "no input has a dimension called M"),
        (["--bound", "N=5"], "--bound N=5: expected NAME=LEAST:GREATEST"),
        (["--bound", "N=5:2"], "greatest is below the least"),
        (["--emit", "exe"], "'exe'"),
        (["--opt-level", "9"], "opt_level"),
        (["--weights", "nowhere"], "weights is one of"),
        (["--pass", "nonsense"], "unknown pass 'nonsense'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_options_are_one_line(
    cuvil: Command, dense: Path, tmp_path: Path, words: list[str], text: str
) -> None:
    assert text in cuvil.fails("compile", dense, "-o", tmp_path / "out", *words)


@pytest.mark.parametrize("command", ["compile", "check", "inspect", "run", "verify"])
def test_bad_files_are_one_line(
    cuvil: Command, dense: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "No such file" in cuvil.fails(command, tmp_path / "missing.onnx")
    (tmp_path / "text.onnx").write_text("not a model")
    assert "text.onnx" in cuvil.fails(command, "text.onnx")
    (tmp_path / "cut.onnx").write_bytes(dense.read_bytes()[:-20])
    assert "cut.onnx" in cuvil.fails(command, "cut.onnx")


def test_debug_shows_the_traceback(cuvil: Command, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"missing\.onnx"):
        cuvil("check", tmp_path / "missing.onnx", "--debug")


def test_usage_errors_and_help(cuvil: Command) -> None:
    assert cuvil("compile").status == 2
    assert cuvil("frobnicate").status == 2
    text = cuvil("--help").out
    words = [
        "compile",
        "build",
        "run",
        "check",
        "verify",
        "bench",
        "inspect",
        "profile",
        "cache",
        "targets",
        "doctor",
    ]
    assert all(word in text for word in words)
    assert cuvil("--version").out.startswith("cuvil 0.")
    for word in words:
        assert cuvil(word, "--help").status == 0


def test_targets_and_doctor(cuvil: Command) -> None:
    (row, *_) = cuvil("targets", "--json").json["backends"]
    assert row["triples"] and row["cpus"] and row["features"]
    assert row["name"] in cuvil("targets").out
    report = cuvil("doctor", "--json").json
    assert report["works"] and report["packages"]["cuvil"] != "missing"
    assert "entries" in report["cache"] and report["threads"][0].isdigit()
    assert "compile and run:" in cuvil("doctor").out


def test_the_cache_command(
    cuvil: Command, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cache"
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(root))
    assert cuvil("cache", "path").out.strip() == str(root)
    cuvil("run", dense, "--input", "random")
    (row,) = json.loads(cuvil("cache", "ls", "--json").out)
    assert row["model"] == "dense"
    assert "dense" in cuvil("cache", "ls").out
    assert "removed 0" in cuvil("cache", "prune").out
    assert "removed 1" in cuvil("cache", "prune", "--max-size", "1kB").out
    assert "is no size" in cuvil.fails("cache", "prune", "--max-size", "much")
    cuvil("run", dense, "--input", "random")
    assert "removed 1" in cuvil("cache", "clear").out
    assert json.loads(cuvil("cache", "ls", "--json").out) == []


def test_an_output_that_is_a_file_is_refused_before_compiling(
    cuvil: Command, dense: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes").write_text("mine")
    assert "is a file" in cuvil.fails("compile", dense, "-o", tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine"


def test_what_is_compiled_already_takes_no_options_of_a_compile(
    cuvil: Command, dense: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    assert cuvil("compile", dense, "-o", made).status == 0
    assert "compiled already" in cuvil.fails("run", made, "-i", "zeros", "--dim", "N=1")
    assert f"--artefact {made}" in cuvil.fails("verify", made)


def test_tuning_says_what_it_found_and_is_for_this_machine(
    cuvil: Command, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    words = ("compile", dense, "-o", tmp_path / "out", "--dim", "N=4")
    assert "tuned: 1 choices" in cuvil(*words, "--tune", "1s").out
    assert "1 known before" in cuvil(*words, "--tune", "1s").out
    assert "tuned" not in cuvil(*words).out
    assert "budget such as 60, '60s'" in cuvil.fails(*words, "--tune", "long")
