"""`CompiledModel`: stands where a model of transformers stood."""

from __future__ import annotations

import inspect
from typing import Any, Unpack

import torch

from cuvil.engine.api import compile
from cuvil.engine.keywords import Keywords
from cuvil.errors import OptionError
from cuvil.integrations.transformers.inputs import Examples, image_examples, text_examples

__all__ = ["CompiledModel", "compile_model"]

# What callers say of options that a compiled model has as they were when it was compiled.
_DEFAULTS = {
    "return_dict": True,
    "use_cache": False,
    "output_attentions": False,
    "output_hidden_states": False,
}


class CompiledModel(torch.nn.Module):
    """A model whose forward is compiled; config, dtype, save_pretrained and others are its own.

    original: the model. engine: what runs, a `frontends.torch.CompiledModule`. signature: what
    calls are checked against: one InputError tells all that does not fit.
    """

    def __init__(self, original: Any, engine: Any, examples: Examples, fixed: Any) -> None:
        super().__init__()
        self.original = original
        self.engine = engine
        self.signature = examples.signature
        self._fixed = fixed
        self._parameters_of_forward = inspect.signature(original.forward).parameters
        self.eval()

    def forward(self, *args: Any, **inputs: Any) -> Any:
        """What the model gives, in its own classes. Inputs by position or name, as tensors."""
        inputs = {**dict(zip(self._parameters_of_forward, args, strict=False)), **inputs}
        given = {k: v for k, v in inputs.items() if not self._means_nothing(k, v)}
        self.signature.check(given)
        # In the order of the examples, which the engine takes as it is.
        return self.engine(**{k: given[k] for k in self.signature.ports}, **self._fixed)

    def _means_nothing(self, name: str, value: Any) -> bool:
        if name in self.signature.ports:
            return False
        default = _DEFAULTS.get(name)
        return value is None or value is default or name not in self._parameters_of_forward

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("original"), name)


def compile_model(
    model: Any,
    processor: Any,
    *,
    image: bool = False,
    max_length: int | None = None,
    pad_to_multiple_of: int = 1,
    threads: int | None = None,
    cache: bool = True,
    **options: Unpack[Keywords],
) -> CompiledModel:
    """Compiles a model of transformers for any number of texts, or of images.

    processor: its tokenizer or, where `image`, its image processor: names and types of the inputs
    are what it makes. max_length: tokens of the longest text, by default what model and tokenizer
    allow. pad_to_multiple_of: lengths are multiples of it, which makes code a little faster; calls
    must keep to it. threads, cache, options: as for `cuvil.compile`. Raises cuvil.Error subclasses.
    """
    if isinstance(model, CompiledModel):
        model = model.original
    examples = examples_of(model, processor, image, max_length, pad_to_multiple_of)
    if options.get("dynamic_shapes"):
        raise OptionError("shapes are the processor's: use max_length and pad_to_multiple_of")
    fixed = fixed_arguments(model)
    options["dynamic_shapes"] = examples.dynamic_shapes
    engine = compile(
        model, input_spec={**examples.inputs, **fixed}, threads=threads, cache=cache, **options
    )
    return CompiledModel(model, engine, examples, fixed)


def examples_of(
    model: Any, processor: Any, image: bool, max_length: int | None = None, multiple: int = 1
) -> Examples:
    """Example inputs of a model by what prepares them. Raises InputError, OptionError."""
    if image:
        return image_examples(model, processor)
    return text_examples(model, processor, max_length, multiple)


def fixed_arguments(model: Any) -> dict[str, Any]:
    """Arguments that are part of the code: decoders give no cache, which a pipeline has no use
    for."""
    return (
        {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
    )
