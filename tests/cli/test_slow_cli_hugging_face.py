"""build: folders of `save_pretrained` with weights in 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuvil as package
from tests.cli.cli_runner import Command

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")
transformers = pytest.importorskip("transformers", reason="needs transformers: tools/setup torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: tools/setup torch")
pytest.importorskip("onnxruntime.quantization", reason="needs onnxruntime: tools/setup bench")
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402 - behind the skips

WORDS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT that tells two classes apart, and its tokenizer."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=64, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=256, max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    found = tmp_path_factory.mktemp("model")
    transformers.BertForSequenceClassification(config).save_pretrained(found / "bert")
    made = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    tokenizer.save_pretrained(found / "bert")
    return found


def inputs(count: int, length: int) -> dict[str, np.ndarray]:
    """Words, all of which count."""
    ids = np.random.default_rng(count).integers(2, WORDS, (count, length))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def eager(folder: Path, given: dict[str, np.ndarray]) -> Any:
    """What transformers gives."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder / "bert").eval()
    with torch.inference_mode():
        return model(**{k: torch.tensor(v) for k, v in given.items()}).logits.numpy()


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_quantised_weights(cuvil: Command, folder: Path, mode: str) -> None:
    given = inputs(3, 24)
    for number, texts in enumerate((given, inputs(32, 8), inputs(32, 32))):  # of the same ranges
        np.savez(folder / f"{number}.npz", **texts)
    data = ", data: ." if mode == "static" else ""
    lengths = "max_length: 32, pad_to_multiple_of: 8"
    (folder / "cuvil.yaml").write_text(
        f"model: {{source: ./bert, task: text-classification, {lengths}}}\n"
        f"quantization: {{mode: {mode}{data}}}\noutput: {mode}/libbert.so\n"
    )
    result = cuvil("build", folder)
    assert result.status == 0, result.err
    found, exact = package.load(folder / mode / "libbert.so")(**given), eager(folder, given)
    assert 0 < np.abs(found - exact).max() < 0.15 * np.abs(exact).max()  # rounded, and right
    assert made_of_bytes(folder / mode / "manifest.json")
    with pytest.raises(package.ShapeMismatchError, match="length must be a multiple of 8"):
        package.load(folder / mode / "libbert.so")(**inputs(1, 9))


def made_of_bytes(manifest: Path) -> bool:
    """Whether most of the weights are bytes: all matrices, which are a quarter of float32's."""
    text = manifest.read_text()
    parameters = 64 * 64 * 5 + 2 * 64 * 256 + 64 * (WORDS + 64)
    size = int(text.partition('"weights_bytes": ')[2].partition(",")[0])
    return size < 2 * parameters
