"""docs/troubleshooting.md: messages about models of torch and Hugging Face are the real ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cuvil
from tests.documents.trouble_entries import BY_TORCH, assert_raised, entries

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")

MESSAGES = entries(*BY_TORCH)
PROVOKED: dict[str, Callable[[], object]] = {}
FUNCTIONS = """
import torch


def branch(x):
    return x * 2 if x.sum() > 0 else x


def project(x):
    return torch.linalg.qr(x).Q


def shift(x, positions):
    return x + positions[:, : x.shape[1]]


def eight(x):
    return x.view(x.shape[0], x.shape[1] // 8, 8)


def times(x, k):
    return x * k


def swirl(x):
    return torch.ops.acme.swirl(x)
"""


def entry(heading: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Registers what raises an entry's message."""

    def register(provoke: Callable[[], object]) -> Callable[[], object]:
        PROVOKED[heading] = provoke
        return provoke

    return register


@pytest.fixture(autouse=True)
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module `functions` in the folder."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "functions", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def compiled(name: str, *examples: Any, **options: Any) -> Any:
    """One of the functions, compiled for examples."""
    function = getattr(__import__("functions"), name)
    return cuvil.compile(function, input_spec=examples, **options)


X = torch.ones(2, 4)
PROMISE = {"x": {1: "seq"}, "seq": "8..512"}
EIGHTS = {"x": {1: "seq"}, "seq": "8..64, multiple of 8"}
entry("A branch on what a tensor holds")(lambda: compiled("branch", X))
entry("A torch operator that Cuvil does not have")(lambda: compiled("project", X))
entry("A line that works for some sizes only")(
    lambda: compiled("shift", torch.zeros(1, 16), torch.zeros(1, 100), dynamic_shapes=PROMISE)
)
entry("A size that breaks a promise")(
    lambda: compiled("eight", torch.zeros(1, 16), dynamic_shapes=EIGHTS)(torch.zeros(1, 12))
)
entry("Another number than the example")(lambda: compiled("times", X, 2)(X, 3))
entry("Other arguments than the examples")(lambda: compiled("times", X, 2)((X, X), 2))
entry("A tensor on another device")(lambda: compiled("times", X, 2)(X.to("meta"), 2))


@entry("A custom operator of torch")
def _() -> None:
    with torch.library._scoped_library("acme", "DEF") as library:
        library.define("swirl(Tensor x) -> Tensor")
        library.impl("swirl", torch.clone, "CompositeExplicitAutograd")
        compiled("swirl", X)


@entry("A node that may not run in torch")
def _() -> None:
    function, options = __import__("functions").project, {"fallback": "error"}
    with torch.inference_mode():
        torch.compile(function, backend="cuvil", options=options)(X)


@entry("A pickle of a module")
def _() -> None:
    torch.save(torch.nn.Linear(4, 4), "net.pt")
    cuvil.compile("net.pt")


# -- Hugging Face ----------------------------------------------------------------------------------
def bert() -> tuple[Any, Any]:
    """A tiny BERT and a tokenizer of three words."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    words = tokenizers.models.WordLevel({"[PAD]": 0, "[UNK]": 1, "on": 2}, "[UNK]")
    made = tokenizers.Tokenizer(words)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    names = ["input_ids", "token_type_ids", "attention_mask"]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", model_input_names=names, model_max_length=64
    )
    config = transformers.BertConfig(
        vocab_size=3, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=64,
    )  # fmt: skip
    return transformers.BertModel(config).eval(), tokenizer


def fast(**options: Any) -> tuple[Any, Any]:
    """The model compiled, and its tokenizer."""
    from cuvil.integrations.transformers import compile_model

    model, tokenizer = bert()
    return compile_model(model, tokenizer, **options), tokenizer


def call(text: str, *absent: str, **options: Any) -> None:
    """Calls the model with a text without some inputs."""
    model, tokenizer = fast(**options)
    given = tokenizer(text, return_tensors="pt")
    model(**{k: v for k, v in given.items() if k not in absent})


entry("A text that is too long")(lambda: call("on " * 60, max_length=32))
entry("A text that is not padded")(lambda: call("on on on", pad_to_multiple_of=8))
entry("An input that the tokenizer does not give")(lambda: call("on", "token_type_ids"))


@entry("Weights that changed after compiling")
def _() -> None:
    model, tokenizer = fast()
    with torch.no_grad():
        model.original.pooler.dense.weight.mul_(2)
    model(**tokenizer("on", return_tensors="pt"))


@entry("A model that is not in the cache")
def _() -> None:
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    from cuvil.integrations.transformers import load

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
        load("fill-mask", "hf://org/name")


@pytest.mark.parametrize("heading", MESSAGES)
def test_the_message_is_what_is_raised(heading: str) -> None:
    assert_raised(MESSAGES[heading], PROVOKED[heading])


def test_nothing_is_provoked_that_the_page_does_not_have() -> None:
    assert set(PROVOKED) == set(MESSAGES)
