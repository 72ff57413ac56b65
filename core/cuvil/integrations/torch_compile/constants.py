"""Weights that code has been made for: which they are, and whether they are still the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter, is_, itemgetter
from typing import Any

import torch

from cuvil.frontends.torch.constants import bytes_of
from cuvil.frontends.torch.types import ELEMENTS
from cuvil.frontends.torch.weights import is_small_buffer

__all__ = ["Constants"]

_version = attrgetter("_version")
_address = torch.Tensor.data_ptr


class Constants:
    """The parameters and buffers among the arguments of a call, at this state.

    Their state is their memory, how often torch has seen them written to, and the contents of small
    buffers. A tensor without a version counter (made in inference mode) is no constant: it is read
    anew.
    """

    def __init__(
        self, args: Sequence[Any], statics: frozenset[int], written: Collection[int] = ()
    ) -> None:
        self.places = [
            k for k, x in enumerate(args) if id(x) in statics and k not in written and _is_plain(x)
        ]
        self.tensors = [args[k] for k in self.places]
        self._kept = [x.detach() for x in self.tensors]  # or new memory could have an old address
        self._small = list(map(is_small_buffer, self.tensors))
        self._pick = _picker(self.places)
        self._state = self._now()

    def hold(self, args: Sequence[Any]) -> bool:
        """Whether a call passes these very tensors, and nobody has written to them since."""
        return all(map(is_, self._pick(args), self.tensors)) and self._now() == self._state

    def replaced(self, other: Constants) -> bool:
        """Whether `other` is of the same tensors, and so holds what they are now."""
        same = len(self.tensors) == len(other.tensors)
        return same and all(map(is_, self.tensors, other.tensors))

    def changed(self, other: Constants) -> list[int]:
        """Places of those that `other`, of the same tensors, has in another state."""
        states = zip(
            self.places, zip(*self._state, strict=True), zip(*other._state, strict=True),
            strict=True,
        )  # fmt: skip
        return [place for place, old, new in states if old != new]

    def named(self, names: Sequence[str]) -> dict[str, torch.Tensor]:
        """Placeholder -> tensor."""
        return {names[k]: x for k, x in zip(self.places, self.tensors, strict=True)}

    def placed(self) -> list[tuple[int, torch.Tensor, bool]]:
        """Their places among the arguments, and whether contents are compared."""
        return list(zip(self.places, self.tensors, self._small, strict=True))

    def _now(self) -> tuple[list[int], list[int], list[bytes]]:
        pairs = zip(self.tensors, self._small, strict=True)
        contents = [bytes_of(x).tobytes() if small else b"" for x, small in pairs]
        return list(map(_version, self.tensors)), list(map(_address, self.tensors)), contents


def _picker(places: Sequence[int]) -> Any:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda args: [args[k] for k in places]


def _is_plain(x: Any) -> bool:
    known = type(x) in (torch.Tensor, torch.nn.Parameter) and x.layout is torch.strided
    return known and x.device.type == "cpu" and x.dtype in ELEMENTS and not x.is_inference()
