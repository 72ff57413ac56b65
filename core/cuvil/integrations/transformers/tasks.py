"""The tasks of Hugging Face that Cuvil compiles the models of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cuvil.errors import OptionError

__all__ = ["TASKS", "Task", "task_of"]


@dataclass(frozen=True)
class Task:
    """auto_class: transformers' class that loads a model for it. image: whether the input is an
    image, and text otherwise."""

    auto_class: str
    image: bool = False


TASKS: Mapping[str, Task] = {
    "feature-extraction": Task("AutoModel"),
    "text-classification": Task("AutoModelForSequenceClassification"),
    "token-classification": Task("AutoModelForTokenClassification"),
    "question-answering": Task("AutoModelForQuestionAnswering"),
    "fill-mask": Task("AutoModelForMaskedLM"),
    "image-classification": Task("AutoModelForImageClassification", image=True),
}
_OTHER_NAMES = {"sentiment-analysis": "text-classification", "ner": "token-classification"}


def task_of(name: str) -> tuple[str, Task]:
    """A task and its name, by one of its names. Raises OptionError."""
    name = _OTHER_NAMES.get(name, name)
    if name not in TASKS:
        raise OptionError(f"task '{name}' is not compiled; there are {', '.join(TASKS)}")
    return name, TASKS[name]
