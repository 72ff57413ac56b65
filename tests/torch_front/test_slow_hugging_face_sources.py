"""Where models of Hugging Face come from: folders, with weights mapped, and the hub's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: tools/setup torch")
transformers = pytest.importorskip("transformers", reason="needs transformers: tools/setup torch")
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402 - behind the skip

PROGRAM = """
import sys
import transformers
from cuvil.integrations.transformers import load

def own_memory():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

load("feature-extraction", sys.argv[1])  # imports what loading needs
before = own_memory()
model, _ = load("feature-extraction", sys.argv[2])
print(sum(p.nbytes for p in model.parameters()), own_memory() - before)
"""


def saved(folder: Path, words: int) -> Path:
    """What save_pretrained writes of a BERT with so many words, and a tokenizer."""
    config = transformers.BertConfig(
        vocab_size=words, hidden_size=256, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    made = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    return folder


def numbers(first: str, second: str, **environment: str) -> list[int]:
    """What the program prints, offline, in a process of its own."""
    paths = os.pathsep.join(filter(None, sys.path))
    env = {**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, first, second],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to ask")
def test_weights_are_mapped_not_copied(tmp_path: Path) -> None:
    small, large = saved(tmp_path / "small", 10), saved(tmp_path / "large", 60_000)
    size, grown = numbers(str(small), str(large))
    assert size > 60_000_000 and grown < size / 10


def test_a_model_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    folder = saved(tmp_path / "small", 10)
    entry = tmp_path / "home" / "hub" / "models--org--name"
    (entry / "refs").mkdir(parents=True)
    (entry / "refs" / "main").write_text("0" * 40)
    shutil.copytree(folder, entry / "snapshots" / ("0" * 40))
    size, _ = numbers(str(folder), "hf://org/name", HF_HOME=str(tmp_path / "home"))
    assert size > 0
