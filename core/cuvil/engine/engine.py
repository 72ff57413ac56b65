"""`Engine`: a model that runs, shaped like the session objects that users know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuvil.errors import InputError
from cuvil_runtime import Launch, Model, TensorInfo


class Engine:
    """A compiled model. Any number of threads may call it at the same time.

    Inputs are numpy arrays, or anything with DLPack or the buffer protocol in the cpu's memory;
    outputs are new numpy arrays. Symbolic dims take any extent that the inputs agree on.
    Raises InputError, DTypeError or ShapeMismatchError that name the input, what was expected and
    what came.
    """

    __slots__ = ("_model", "_names", "_run")

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names = tuple(i.name for i in model.inputs)
        self._run = model.run

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        """The outputs for inputs by position, by keyword or in one dict: one array, or a tuple."""
        if inputs or (len(args) == 1 and isinstance(args[0], Mapping)):
            args = tuple(self._ordered({**(args[0] if args else {}), **inputs}))
        outputs = self._run(args)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(
        self,
        output_names: Sequence[str] | None,
        feed: Mapping[str, Any],
        *,
        time_limit: float = 0.0,
    ) -> list[np.ndarray[Any, Any]]:
        """The named outputs (None: all, in order) for inputs by name. time_limit: seconds."""
        outputs = self._run(self._ordered(feed), None, time_limit)
        if output_names is None:
            return outputs
        places = {o.name: i for i, o in enumerate(self._model.outputs)}
        unknown = [n for n in output_names if n not in places]
        if unknown:
            known = ", ".join(places)
            raise InputError(f"no output is called '{unknown[0]}'; there are: {known}")
        return [outputs[places[n]] for n in output_names]

    def _ordered(self, feed: Mapping[str, Any]) -> list[Any]:
        unknown = [n for n in feed if n not in self._names]
        missing = [n for n in self._names if n not in feed]
        if unknown or missing:
            what = f"no input is called '{unknown[0]}'" if unknown else f"missing '{missing[0]}'"
            raise InputError(f"{what}; the inputs are: {', '.join(self._names)}")
        return [feed[n] for n in self._names]

    def get_inputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and dims (an int, a symbol's name, or None) of each input."""
        return self._model.inputs

    def get_outputs(self) -> tuple[TensorInfo, ...]:
        """Likewise of each output."""
        return self._model.outputs

    def warmup(self, **symbols: int) -> None:
        """Runs once on zeros so that memory is mapped and caches are warm.

        symbols: extents of symbolic dims, by name; others take their least value, at least 1.
        """
        self._run([np.zeros(self._extents(i, symbols), i.dtype) for i in self._model.inputs])

    def _extents(self, tensor: TensorInfo, symbols: Mapping[str, int]) -> list[int]:
        bounds = self._model.symbols

        def extent(dim: int | str | None) -> int:
            if isinstance(dim, int):
                return dim
            return symbols.get(str(dim), max(1, bounds[str(dim)][0] if dim in bounds else 1))

        return [extent(d) for d in tensor.dims]

    def profile(self, feed: Mapping[str, Any]) -> tuple[list[np.ndarray[Any, Any]], list[Launch]]:
        """Outputs of one run, and each kernel launch with its nodes and times in nanoseconds."""
        return self._model.profile(self._ordered(feed))

    def cancel(self) -> None:
        """Stops all runs in flight, from any thread: they raise CancelledError."""
        self._model.cancel()

    @property
    def model(self) -> Model:
        """The runtime's handle: variant, threads, arena_bytes, weights_bytes."""
        return self._model

    def __repr__(self) -> str:
        return f"<cuvil.Engine {self._model.name!r}, {self._model.variant}>"
