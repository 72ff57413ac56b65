"""Models of transformers as sources of a compile to a library."""

from __future__ import annotations

from typing import Any

from cuvil.extents import read_dynamic_shapes
from cuvil.frontends.torch.door import open_torch
from cuvil.integrations.transformers.loading import load
from cuvil.integrations.transformers.model import examples_of, fixed_arguments
from cuvil.integrations.transformers.tasks import task_of

__all__ = ["open_pretrained"]


def open_pretrained(
    task: str, source: str, max_length: int | None = None, multiple: int = 1, name: str = ""
) -> Any:
    """The exported model of a folder of `save_pretrained` or of `hf://org/name`, for any batch and
    length. The arguments are as for `compile_model`. Raises subclasses of cuvil.Error."""
    model, processor = load(task, source)
    examples = examples_of(model, processor, task_of(task)[1].image, max_length, multiple)
    inputs = {**examples.inputs, **fixed_arguments(model)}
    dynamic = read_dynamic_shapes(examples.dynamic_shapes)
    return open_torch(model, inputs, dynamic, name).source
