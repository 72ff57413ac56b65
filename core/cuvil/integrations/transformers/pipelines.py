"""Pipelines of transformers, and sentence-transformers, with compiled models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import transformers

from cuvil.errors import InputError, OptionError
from cuvil.integrations.transformers.loading import load
from cuvil.integrations.transformers.model import compile_model
from cuvil.integrations.transformers.question_answering import QuestionAnswering
from cuvil.integrations.transformers.tasks import task_of

__all__ = ["compile_pipeline", "compile_sentence_transformer", "pipeline"]

Pipe = TypeVar("Pipe")


def pipeline(
    task: str,
    model: Any = None,
    *,
    accelerator: str | None = "cuvil",
    compile_options: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Any:
    """transformers' `pipeline(task, model, **keywords)` with the model compiled.

    model: a folder of `save_pretrained`, `org/name`, `hf://org/name`, or a model, whose tokenizer
    or image processor is a keyword then. accelerator: "cuvil", or None for torch. compile_options:
    as for `compile_model`. "question-answering" gives a `QuestionAnswering`, since transformers has
    no such pipeline any more. Raises ModelError, OptionError and other subclasses of cuvil.Error.
    """
    if accelerator not in ("cuvil", None):
        raise OptionError(f"accelerator is 'cuvil' or None, not {accelerator!r}")
    task, about = task_of(task)
    role = "image_processor" if about.image else "tokenizer"
    if isinstance(model, str | os.PathLike):
        model, processor = load(task, model)
        keywords.setdefault(role, processor)
    if model is None or keywords.get(role) is None:
        raise InputError(f"{task}: give model= as a folder or a name, or a model with {role}=")
    make: Any = transformers.pipeline
    answers = task == "question-answering"
    made = QuestionAnswering(model, **keywords) if answers else make(task, model, **keywords)
    return compile_pipeline(made, **(compile_options or {})) if accelerator else made


def compile_pipeline(pipe: Pipe, **options: Any) -> Pipe:
    """Swaps the model of a pipeline for a compiled one, and gives the pipeline.

    pipe: a pipeline of transformers for one of `tasks.TASKS`, or a `QuestionAnswering`. options: as
    for `compile_model`. Raises OptionError for other tasks, and subclasses of cuvil.Error.
    """
    target: Any = pipe
    _, about = task_of(str(target.task))
    processor = target.image_processor if about.image else target.tokenizer
    target.model = compile_model(target.model, processor, image=about.image, **options)
    return pipe


def compile_sentence_transformer(encoder: Pipe, **options: Any) -> Pipe:
    """Swaps the model in a `SentenceTransformer` for a compiled one, so that `encode` runs it, and
    gives the encoder. options: as for `compile_model`; max_length is the encoder's own."""
    target: Any = encoder
    first = target[0]
    if not hasattr(first, "auto_model"):
        raise InputError(f"a {type(first).__name__} at the head of an encoder is not compiled")
    options.setdefault("max_length", target.max_seq_length)
    first.model = compile_model(first.auto_model, target.tokenizer, **options)
    return encoder
