"""Devices as users get them: by installed packages, from Python and from C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from device_models import did, floats, mlp

import cuvil
import cuvil_backend_toy as toy
from cuvil.aot.write import compile_to_folder
from cuvil.frontends.onnx import import_model
from cuvil.ops.interpreter import run as interpret
from cuvil.options import Options
from cuvil.targets import registry
from cuvil.targets.target_list import resolve


def test_a_short_name_and_the_host_behind_it() -> None:
    targets = resolve("toy:wooden")
    assert [(b.name, t.cpu) for b, t in targets.accelerators] == [("toy", "wooden")]
    assert targets.host == registry.find("cpu")


def test_compile_by_name(
    shim: toy.Toy, rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the compiler and from its cache, the device is found by its name."""
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    source, x = mlp(rng, "B"), floats(rng, 4, 8)
    want = interpret(import_model(source), {"x": x})["y"]
    for _ in range(2):
        engine = cuvil.compile(source, target="toy,cpu")
        shim.took()
        np.testing.assert_allclose(engine(x), want, rtol=1e-5, atol=1e-6)
        assert shim.took() == did(2, 2, 2)


def test_a_c_program_hands_the_device_over(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    source = mlp(rng, "B")
    artefact = compile_to_folder(source, tmp_path, Options(target="toy"), emit=["o"])
    assert "device toy" in artefact.files["header"].read_text()
    assert [d["name"] for d in artefact.manifest["devices"]] == ["toy"]
    program = tmp_path / "program"
    here = Path(__file__).parent
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-I", tmp_path, "-I", tmp_path / "include"]
        + [
            here / "use_mlp.c",
            here / "cuvil_backend_toy" / "toy.c",
            artefact.files["o"],
            "-pthread",
        ]
        + ["-o", program],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    message, *numbers = done.stdout.split("\n")[:-1]
    assert message == "'mlp' needs device 'toy': give it in the options' devices"
    x = (np.float32(0.1) * np.arange(24, dtype=np.float32)).reshape(3, 8)
    want = interpret(import_model(source), {"x": x})["y"]
    np.testing.assert_allclose(np.array(numbers, np.float32).reshape(3, 5), want, rtol=1e-5)
