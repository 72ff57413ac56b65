"""Hugging Face: pipelines and sentence encoders whose models are compiled.

Names load what they need when they are first used: `tasks` needs neither torch nor transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuvil.integrations.transformers.loading import load
    from cuvil.integrations.transformers.model import CompiledModel, compile_model
    from cuvil.integrations.transformers.pipelines import (
        compile_pipeline,
        compile_sentence_transformer,
        pipeline,
    )
    from cuvil.integrations.transformers.question_answering import QuestionAnswering

__all__ = [
    "CompiledModel",
    "QuestionAnswering",
    "compile_model",
    "compile_pipeline",
    "compile_sentence_transformer",
    "load",
    "pipeline",
]

_HOMES = {
    "CompiledModel": "model",
    "QuestionAnswering": "question_answering",
    "compile_model": "model",
    "load": "loading",
}


def __getattr__(name: str) -> Any:
    """The public names, each from its module; kept once found."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'pipelines')}"), name)
    globals()[name] = value
    return value
