"""What a compiled model takes, and what is wrong with what a tokenizer gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from cuvil.errors import DTypeError, InputError, ShapeMismatchError

__all__ = ["Port", "Signature"]


@dataclass(frozen=True)
class Port:
    """One input: its type, and its extents after the first, which is the batch; None is the length
    of the text."""

    dtype: torch.dtype
    extents: tuple[int | None, ...]


@dataclass(frozen=True)
class Signature:
    """Inputs of a compiled model. lengths: least and greatest length of a text, in tokens, and
    what it must be a multiple of."""

    name: str
    ports: Mapping[str, Port]
    lengths: tuple[int, int, int] = (1, 1, 1)

    def check(self, inputs: Mapping[str, Any]) -> None:
        """Raises one InputError that says all that does not fit: a ShapeMismatchError or DTypeError
        where it is only that."""
        problems = [*self._problems(inputs)]
        if problems:
            kinds = {kind for kind, _ in problems}
            kind = kinds.pop() if len(kinds) == 1 else InputError
            told = "; ".join(dict.fromkeys(text for _, text in problems))
            raise kind(f"{self.name}: the inputs do not fit the compiled model: {told}")

    def _problems(self, inputs: Mapping[str, Any]) -> Iterator[tuple[type[InputError], str]]:
        for name in self.ports:
            if name not in inputs:
                yield InputError, _missing(name)
        seen: dict[int, tuple[str, int]] = {}  # of the batch and of the length: first said by
        for name, value in inputs.items():
            port = self.ports.get(name)
            if port is None:
                yield InputError, f"'{name}' is not among the inputs {', '.join(self.ports)}"
            elif not isinstance(value, torch.Tensor):
                kind = type(value).__name__
                yield InputError, f"'{name}' is a {kind}, no tensor: pass return_tensors='pt'"
            else:
                yield from self._of_tensor(name, value, port, seen)

    def _of_tensor(
        self, name: str, value: torch.Tensor, port: Port, seen: dict[int, tuple[str, int]]
    ) -> Iterator[tuple[type[InputError], str]]:
        if value.dtype != port.dtype:
            has, wants = (str(d).removeprefix("torch.") for d in (value.dtype, port.dtype))
            yield DTypeError, f"'{name}' is {has}, compiled for {wants}: use .to(torch.{wants})"
        shape = tuple(value.shape)
        extents = (None, *port.extents)
        fits = len(shape) == len(extents) and all(
            e is None or e == d for e, d in zip(extents, shape, strict=True)
        )
        if not fits:
            yield ShapeMismatchError, f"'{name}' is {list(shape)}, compiled for {_words(extents)}"
            return
        for axis, extent in enumerate(extents):
            if extent is not None:
                continue
            first, size = seen.setdefault(axis, (name, shape[axis]))
            if size != shape[axis]:
                yield (
                    ShapeMismatchError,
                    f"'{first}' has {size} {_AXES[axis]}, '{name}' has {shape[axis]}",
                )
            if axis == 1:
                yield from self._of_length(shape[1])

    def _of_length(self, size: int) -> Iterator[tuple[type[InputError], str]]:
        least, most, multiple = self.lengths
        text = f"{size} tokens, compiled for "
        if size > most:
            text += f"{most} at most: pass truncation=True, max_length={most} to the tokenizer"
            yield ShapeMismatchError, text
        elif size < least or size % multiple:
            text += f"a multiple of {multiple}: pass padding=True, pad_to_multiple_of={multiple}"
            yield ShapeMismatchError, f"{text} to the tokenizer"


_AXES = ("texts", "tokens")


def _missing(name: str) -> str:
    return (
        f"'{name}' is missing: pass return_{name}=True to the tokenizer, "
        "or add it to tokenizer.model_input_names"
    )


def _words(extents: tuple[int | None, ...]) -> str:
    names = ("batch", "length")
    return str([names[k] if e is None else e for k, e in enumerate(extents)]).replace("'", "")
