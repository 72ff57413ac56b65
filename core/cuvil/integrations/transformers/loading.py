"""Models and what prepares their inputs, from a folder of `save_pretrained` or by name."""

from __future__ import annotations

import os
from typing import Any

import transformers

from cuvil.errors import ModelError
from cuvil.integrations.transformers.tasks import task_of

__all__ = ["HUB", "load", "place_of"]

HUB = "hf://"


def place_of(source: str | os.PathLike[str]) -> str:
    """What transformers loads from: a folder, or `org/name` for `hf://org/name`.

    Raises ModelError for a folder without a config.json.
    """
    word = os.fspath(source)
    if word.startswith(HUB):
        return word.removeprefix(HUB)
    looks_like_a_folder = word.startswith((".", "/", "~")) or not isinstance(source, str)
    place = os.path.expanduser(word)
    if os.path.isdir(place) or looks_like_a_folder:
        if not os.path.isfile(os.path.join(place, "config.json")):
            raise ModelError(f"{word}: no folder of save_pretrained: there is no config.json in it")
        return place
    return word


def load(task: str, source: str | os.PathLike[str]) -> tuple[Any, Any]:
    """A model for a task, for inference, and its tokenizer or image processor.

    source: a folder, `org/name` or `hf://org/name`, which transformers takes from its cache or
    loads. Files of a folder are all that is needed, and weights in safetensors are mapped. Raises
    ModelError, OptionError.
    """
    _, about = task_of(task)
    place = place_of(source)
    try:
        model = getattr(transformers, about.auto_class).from_pretrained(place)
        chosen = transformers.AutoImageProcessor if about.image else transformers.AutoTokenizer
        return model.eval(), chosen.from_pretrained(place)
    except (OSError, ValueError, ImportError) as error:
        raise cannot_load(place, error) from error


def cannot_load(place: str, error: Exception) -> ModelError:
    """What to raise where transformers found nothing to load."""
    lines = str(error).strip().splitlines()
    reason = lines[0].strip() if lines else type(error).__name__
    if os.path.isdir(place):
        return ModelError(f"{place}: {reason}")
    return ModelError(
        f"{HUB}{place}: it is not in the cache of transformers and could not be loaded ({reason}); "
        "without a network give a folder that save_pretrained wrote, such as ./folder"
    )
