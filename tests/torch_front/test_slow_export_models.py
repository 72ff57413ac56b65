"""Networks of transformers, random and tiny, exported with symbolic extents and promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch.export", reason="needs torch: tools/setup torch")
transformers = pytest.importorskip("transformers", reason="needs transformers: tools/setup torch")
import torch  # noqa: E402

import cuvil  # noqa: E402

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64}  # fmt: skip
WORDS = {0: "batch", 1: "seq"}


def bert() -> Any:
    return transformers.BertModel(transformers.BertConfig(vocab_size=100, **SMALL))


def llama() -> Any:
    config = transformers.LlamaConfig(
        vocab_size=100, num_key_value_heads=2, use_cache=False, **SMALL
    )
    return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize(("make", "batches"), [(bert, [1]), (llama, [])])
def test_any_batch_and_length_that_was_promised(
    make: Callable[[], Any], batches: list[int]
) -> None:
    torch.manual_seed(0)
    model = make().eval()

    def inputs(rows: int, words: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(5, 90, (rows, words))
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    engine = cuvil.compile(
        model,
        input_spec=inputs(2, 16),
        dynamic_shapes={"input_ids": WORDS, "attention_mask": WORDS, "batch": "1..8",
                        "seq": "8..64:8"},
        batch=batches, cache=False,
    )  # fmt: skip
    for rows, words in ((1, 8), (3, 24)):
        given = inputs(rows, words)
        with torch.no_grad():
            wanted = model(**given)
        got = engine(**given)
        assert type(got) is type(wanted)
        torch.testing.assert_close(got[0], wanted[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(cuvil.ShapeMismatchError, match="seq must be a multiple of 8"):
        engine(**inputs(1, 12))
