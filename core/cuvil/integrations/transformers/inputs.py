"""The inputs that a tokenizer or an image processor makes, as a compile wants them told."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cuvil.errors import InputError, OptionError
from cuvil.integrations.transformers.signature import Port, Signature

__all__ = ["Examples", "image_examples", "text_examples"]

_LENGTH = 16  # of the example; others are as good
_UNBOUNDED = 1 << 20  # tokens: tokenizers without a limit say a huge number


@dataclass(frozen=True)
class Examples:
    """Example inputs, what varies in them, and what calls are checked against."""

    inputs: Mapping[str, torch.Tensor]
    dynamic_shapes: Mapping[str, Any]
    signature: Signature


def text_examples(model: Any, tokenizer: Any, max_length: int | None, multiple: int) -> Examples:
    """Of a model of texts: any number of them, of 1 to max_length tokens.

    Raises InputError where the tokenizer makes what the model does not take, OptionError.
    """
    most = _greatest(model, tokenizer, max_length, multiple)
    made = tokenizer("a", return_tensors="pt")
    name = type(model).__name__
    taken = _taken(model, name, made, tokenizer)
    length = min(-(-_LENGTH // multiple) * multiple, most)
    inputs = {
        key: torch.full((2, length), int(key == "attention_mask"), dtype=made[key].dtype)
        for key in taken
    }
    axes: dict[str, Any] = {key: {0: "batch", 1: "length"} for key in inputs}
    axes["length"] = f"{multiple}..{most}" + (f":{multiple}" if multiple > 1 else "")
    ports = {key: Port(x.dtype, (None,)) for key, x in inputs.items()}
    return Examples(inputs, axes, Signature(name, ports, (multiple, most, multiple)))


def _taken(model: Any, name: str, made: Mapping[str, Any], tokenizer: Any) -> list[str]:
    """The tokenizer's outputs that the model's forward has parameters for."""
    parameters = inspect.signature(model.forward).parameters
    others = [key for key in made if key not in parameters]
    open_end = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if others and not open_end:
        raise InputError(
            f"{name}: the tokenizer {type(tokenizer).__name__} gives {', '.join(others)}, which "
            f"forward does not take: set tokenizer.model_input_names to what it takes"
        )
    found = [key for key in made if key in parameters]
    if not found:
        raise InputError(f"{name}: forward takes nothing of what the tokenizer gives: {others}")
    return found


def _greatest(model: Any, tokenizer: Any, wanted: int | None, multiple: int) -> int:
    """How many tokens a text may have."""
    limits = [n for n in (tokenizer.model_max_length, _positions(model)) if n < _UNBOUNDED]
    limit = min(limits, default=_UNBOUNDED - 1)
    if wanted is not None and not 0 < wanted <= limit:
        raise OptionError(f"max_length is 1 to {limit} for this model, not {wanted}")
    if not 0 < multiple <= (wanted or limit):
        raise OptionError(f"pad_to_multiple_of is 1 to {wanted or limit}, not {multiple}")
    return (wanted or limit) // multiple * multiple


def _positions(model: Any) -> int:
    """How many positions a model knows."""
    most = int(getattr(model.config, "max_position_embeddings", None) or _UNBOUNDED)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None):
            return most - int(module.padding_idx) - 1  # RoBERTa counts from behind the padding
    return most


def image_examples(model: Any, processor: Any) -> Examples:
    """Of a model of images: any number of them, in the size that the processor makes."""
    made = processor(images=np.zeros((64, 64, 3), np.uint8), return_tensors="pt")
    pixels = made["pixel_values"].to(model.dtype)
    inputs = {"pixel_values": pixels.repeat(2, *[1] * (pixels.dim() - 1))}
    ports = {"pixel_values": Port(pixels.dtype, tuple(pixels.shape[1:]))}
    axes = {"pixel_values": {0: "batch"}}
    return Examples(inputs, axes, Signature(type(model).__name__, ports))
