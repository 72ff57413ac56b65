"""`Engine`: a model that runs, shaped like the session objects that users know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import modules
from types import TracebackType
from typing import Any

import ml_dtypes  # noqa: F401 - makes numpy know "bfloat16"
import numpy as np

from cuvil.engine.torch_arrays import has_tensor, to_arrays, to_tensors
from cuvil.errors import InputError
from cuvil_runtime import Launch, Model, TensorInfo

Array = np.ndarray[Any, Any]


class Engine:
    """A compiled model. Any number of threads may call it at the same time.

    Inputs are numpy arrays, or anything with DLPack or the buffer protocol in the cpu's memory;
    outputs are new numpy arrays, or torch tensors where an input was one. Strings come as lists or
    arrays of str (numpy's own types of text too) and go as object arrays of str. Symbolic dims take
    any extent that the inputs agree on. The interpreter's lock is free while the model runs.

    Raises InputError, DTypeError or ShapeMismatchError that name the input, what was expected and
    what came; RuntimeFailure where the model itself fails, and after `close`.
    """

    __slots__ = ("_model", "_names", "_run")

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names = tuple(i.name for i in model.inputs)
        self._run = model.run

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        """The outputs for inputs by position, by keyword or in one dict: one array, or a tuple."""
        if inputs or (len(args) == 1 and isinstance(args[0], Mapping)):
            args = tuple(self._ordered(_merged(args, inputs)))
        if "torch" in modules and has_tensor(args):
            outputs = to_tensors(self._run(to_arrays(args)))
        else:
            outputs = self._run(args)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(
        self,
        output_names: Sequence[str] | None,
        feed: Mapping[str, Any],
        *,
        time_limit: float = 0.0,
    ) -> list[Any]:
        """The named outputs (None: all, in order) for inputs by name.

        time_limit: seconds (0: none) after which the run stops with TimeLimitError.
        """
        args = self._ordered(feed)
        if "torch" in modules and has_tensor(args):
            outputs = to_tensors(self._run(to_arrays(args), None, time_limit))
        else:
            outputs = self._run(args, None, time_limit)
        return outputs if output_names is None else self._named(output_names, outputs)

    def _named(self, names: Sequence[str], outputs: list[Any]) -> list[Any]:
        places = {o.name: i for i, o in enumerate(self._model.outputs)}
        for name in names:
            if name not in places:
                raise InputError(f"no output is called '{name}'; there are: {', '.join(places)}")
        return [outputs[places[n]] for n in names]

    def _ordered(self, feed: Mapping[str, Any]) -> list[Any]:
        if len(feed) == len(self._names):
            try:
                return [feed[n] for n in self._names]
            except KeyError:
                pass
        unknown = [n for n in feed if n not in self._names]
        missing = [n for n in self._names if n not in feed]
        what = f"no input is called '{unknown[0]}'" if unknown else f"missing input '{missing[0]}'"
        raise InputError(f"{what}; the inputs are: {', '.join(self._names)}")

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
        self._run(self.zeros(**symbols))

    def zeros(self, **symbols: int) -> list[Array]:
        """An array of zeros (of empty strings) for every input, in order; symbols as for
        `warmup`."""
        return [_zeros(self._extents(i, symbols), i.dtype) for i in self._model.inputs]

    def _extents(self, tensor: TensorInfo, symbols: Mapping[str, int]) -> list[int]:
        bounds = self._model.symbols

        def extent(dim: int | str | None) -> int:
            if isinstance(dim, int):
                return dim
            return symbols.get(str(dim), max(1, bounds[str(dim)][0] if dim in bounds else 1))

        return [extent(d) for d in tensor.dims]

    def profile(self, feed: Mapping[str, Any]) -> tuple[list[Array], list[Launch]]:
        """Outputs of one run, and each kernel launch with its nodes and times in nanoseconds."""
        return self._model.profile(self._ordered(feed))

    def cancel(self) -> None:
        """Stops all runs in flight, from any thread: they raise CancelledError."""
        self._model.cancel()

    def close(self) -> None:
        """Frees the model's memory; later calls raise. RuntimeFailure while a run is in flight."""
        self._model.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def model(self) -> Model:
        """The runtime's handle: variant, threads, arena_bytes, weights_bytes."""
        return self._model

    def __repr__(self) -> str:
        return f"<cuvil.Engine {self._model.name!r}>"


def _zeros(shape: Sequence[int], dtype: str) -> Array:
    return np.full(shape, "", object) if dtype == "string" else np.zeros(shape, dtype)


def _merged(args: Sequence[Any], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Inputs by name from one dict, keywords, or both."""
    if not args:
        return inputs
    if len(args) > 1 or not isinstance(args[0], Mapping):
        raise InputError("inputs come by position or by name, not both in one call")
    twice = [n for n in inputs if n in args[0]]
    if twice:
        raise InputError(f"input '{twice[0]}' is given twice")
    return {**args[0], **inputs}
