"""Extractive question answering: the span of a text that answers a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from cuvil.errors import InputError

__all__ = ["QuestionAnswering"]


class _Span(NamedTuple):
    score: float
    start: int
    end: int


class QuestionAnswering:
    """A model for question answering as a pipeline: `answer(question=..., context=...)`.

    A text that is longer than max_length tokens, with its question, is read in windows that share
    stride tokens. The tokenizer must be a fast one, which knows where in the text tokens stand.
    """

    task = "question-answering"

    def __init__(
        self, model: Any, tokenizer: Any, *, max_length: int = 384, stride: int = 128
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(f"question answering needs a fast tokenizer, not {tokenizer!r}")
        self.model = model
        self.tokenizer = tokenizer
        self.max_length = min(max_length, int(tokenizer.model_max_length))
        self.stride = min(stride, self.max_length // 4)

    def __call__(
        self, question: str, context: str, *, max_answer_len: int = 15
    ) -> Mapping[str, Any]:
        """score (0 to 1), start, end (characters of context) and answer, which is
        context[start:end]. max_answer_len: in tokens."""
        windows = self.tokenizer(
            question, context, truncation="only_second", max_length=self.max_length,
            stride=self.stride, return_overflowing_tokens=True, return_offsets_mapping=True,
            padding=True, return_tensors="pt",
        )  # fmt: skip
        offsets = windows.pop("offset_mapping")
        windows.pop("overflow_to_sample_mapping", None)
        with torch.inference_mode():
            found = self.model(**windows)
        spans = [
            _best(
                found.start_logits[k], found.end_logits[k], _of_context(windows, k), offsets[k],
                max_answer_len,
            )
            for k in range(len(offsets))
        ]  # fmt: skip
        best = max(spans)
        return {**best._asdict(), "answer": context[best.start : best.end]}


def _of_context(windows: Any, window: int) -> torch.Tensor:
    """Which tokens of a window belong to the text."""
    return torch.tensor([part == 1 for part in windows.sequence_ids(window)])


def _best(
    starts: torch.Tensor, ends: torch.Tensor, inside: torch.Tensor, offsets: Any, most: int
) -> _Span:
    """The likeliest span of a window: the product of its ends' probabilities, over the tokens of
    the text, as the authors of BERT do for SQuAD."""
    if not bool(inside.any()):
        return _Span(0.0, 0, 0)
    first, last = (
        torch.softmax(x.float().masked_fill(~inside, -torch.inf), -1) for x in (starts, ends)
    )
    scores = torch.outer(first, last).triu().tril(most - 1)
    start, end = divmod(int(scores.argmax()), scores.shape[1])
    return _Span(float(scores[start, end]), int(offsets[start][0]), int(offsets[end][1]))
