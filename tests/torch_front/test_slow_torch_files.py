"""TorchScript, files of torch, and `package.module:factory`: compiled here and ahead of time."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch.export", reason="needs torch: tools/setup torch")
import torch

import cuvil
from cuvil.cli.compile_command import compile_model
from cuvil.frontends.torch.archive import load_file
from tests.torch_front.torch_models import Dense, Peeking, Remembering

Dim = torch.export.Dim
X = torch.linspace(-1, 1, 24).reshape(3, 8)
HERE = "tests.torch_front.torch_models"


def test_a_traced_file_by_shape_and_for_all_rows(tmp_path: Path) -> None:
    model, path = Dense().eval(), str(tmp_path / "dense.pt")
    torch.jit.trace(model, X).save(path)
    for rows in (3, "n"):
        engine = cuvil.compile(path, input_spec=[("x", "float32", (rows, 8))], cache=False)
        torch.testing.assert_close(engine(X), model(X))
        assert engine.get_inputs()[0] == ("x", "float32", (rows, 8))
    with pytest.raises(cuvil.InputError, match="give example inputs"):
        cuvil.compile(path)


def test_attributes_that_forward_assigns_are_state() -> None:
    script, twin = (torch.jit.script(Remembering()) for _ in range(2))
    engine = cuvil.compile(script, input_spec=(X, 3), cache=False)
    for _ in range(3):
        torch.testing.assert_close(engine(X, 3), twin(X, 3))
    assert list(engine.states) == ["total"] and script.total.numel() == 0
    engine.reset_states()
    torch.testing.assert_close(engine(X, 3), 6 * X)
    with pytest.raises(cuvil.InputError, match="is 2, compiled for 3"):
        engine(X, 2)


def test_a_branch_on_data_names_its_line() -> None:
    with pytest.raises(cuvil.UnsupportedError, match=r"elements of a tensor.*bool\(x.sum"):
        cuvil.compile(torch.jit.script(Peeking()), input_spec=X, cache=False)


@pytest.mark.skipif(find_spec("silero_vad") is None, reason="silero_vad is not installed")
def test_silero_listens_as_it_does_in_torch(tmp_path: Path) -> None:
    found = find_spec("silero_vad")
    assert found is not None and found.submodule_search_locations
    path = Path(found.submodule_search_locations[0], "data", "silero_vad.jit")
    script = load_file(str(path))
    engine = cuvil.compile(str(path), input_spec=(torch.zeros(1, 512), 16000), cache=False)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        x = torch.randn(1, 512, generator=generator) * 0.3
        torch.testing.assert_close(engine(x, 16000), script(x, 16000), rtol=1e-4, atol=1e-5)
    assert set(engine.states) == {"state", "context"}


def test_ahead_of_time_from_a_module_and_by_the_command(tmp_path: Path) -> None:
    model = Dense().eval()
    compiler = cuvil.Compiler.load(model, input_spec=[("x", "float32", ("n", 8))])
    compiler.optimize(cpu="x86-64", dynamic_shapes={"n": "1..64"}, batch=[1])
    made = compiler.compile(output_path=tmp_path / "libnet.so")
    assert made.manifest["symbols"] == [{"name": "n", "min": 1, "max": 64}]
    assert made.manifest["specialized"] == [{"n": 1}]
    np.testing.assert_allclose(cuvil.load(tmp_path)(X.numpy()), model(X).detach(), atol=1e-6)
    compile_model(f"{HERE}:with_examples", str(tmp_path / "made"), cpu="x86-64")
    data = json.loads((tmp_path / "made" / "manifest.json").read_text())
    assert data["name"] == "with_examples" and data["inputs"][0]["dims"] == [2, 8]
    compile_model(f"{HERE}:dense", str(tmp_path / "libd.so"), cpu="x86-64", graph_fusion=False,
                  input_spec=["x=float32[n,8]"], memory_plan="dynamic")  # fmt: skip
    np.testing.assert_allclose(
        cuvil.load(tmp_path / "libd.so")(X.numpy()), model(X).detach(), atol=1e-6
    )


def test_the_cache_knows_a_module_by_its_contents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    stages: list[str] = []
    for name, change in (("n", 0.0), ("n", 0.0), ("m", 0.0), ("n", 1.0)):
        model = Dense().eval()
        with torch.no_grad():
            model.layer.bias += change
        spec = [("x", "float32", (name, 8))]
        engine = cuvil.compile(model, input_spec=spec, progress=stages.append)
        torch.testing.assert_close(engine(X), model(X))
        assert engine.get_inputs()[0].dims == (name, 8)
    assert stages.count("export") == 4 and stages.count("rewrite") <= 4


class Evil:
    """Would run code where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return eval, ("(_ for _ in ()).throw(SystemExit('code of the file ran'))",)


def _damaged(path: Path, change: Callable[[str, bytes], bytes], extra: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    root = next(iter(members)).split("/")[0]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, change(name, data))
        for name, data in extra.items():
            archive.writestr(f"{root}/{name}", data)


@pytest.mark.parametrize(
    ("old", "new", "extra", "message"),
    [
        (b"", b"", {"data/constants/opaque_obj_0": pickle.dumps(Evil())}, "Python objects"),
        (b"torch.ops.aten.linear.default", b"torch.serialization.load", {}, "no operator"),
        (b"Symbol('s", b"__import__('s", {}, "no expression of sizes"),
        (b"positive=True", b"positive=exit()", {}, "no expression of sizes"),
    ],
)
def test_archives_that_would_run_code_are_refused(
    tmp_path: Path, old: bytes, new: bytes, extra: dict[str, bytes], message: str
) -> None:
    path = tmp_path / "evil.pt2"
    rows = {"x": {0: torch.export.Dim("rows")}}
    torch.export.save(torch.export.export(Dense().eval(), (X,), dynamic_shapes=rows), path)
    assert load_file(str(path)) is not None
    _damaged(path, lambda name, data: data.replace(old, new) if old else data, extra)
    with pytest.raises(cuvil.ModelError, match=message):
        load_file(str(path))


def test_pickles_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    torch.save(Dense(), path)
    with pytest.raises(cuvil.ModelError, match="a pickle of Python objects"):
        cuvil.compile(str(path), input_spec=X)
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(cuvil.ModelError, match="no archive of torch"):
        cuvil.compile(str(path), input_spec=X)
    with pytest.raises(cuvil.ModelError, match="cannot be opened"):
        cuvil.compile(str(tmp_path / "none.pt2"))
    with pytest.raises(cuvil.ModelError, match="no attribute 'nothing'"):
        cuvil.compile(f"{HERE}:nothing")
