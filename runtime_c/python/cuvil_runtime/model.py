"""Loaded models: what they take and give, and running them."""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from cuvil_runtime import _runtime
from cuvil_runtime.errors import ArtefactError, OptionError

Array = np.ndarray[Any, Any]
Path = str | os.PathLike[str]
WeightsReader = Callable[[int, int], Any]
Devices = Mapping[str, Any] | None
Weights = Path | bytes | bytearray | memoryview | Array | WeightsReader | None

_ELF_MAGIC = b"\x7fELF"
_RELOCATABLE, _SHARED = 1, 3


class TensorInfo(NamedTuple):
    """An input or output. A dim is an extent, a symbol's name, or None where only a run tells it.

    `dtype` is numpy's name of the element type, or "bfloat16".
    """

    name: str
    dtype: str
    dims: tuple[int | str | None, ...]


class Launch(NamedTuple):
    """One kernel of a profiled run: its name, the graph nodes it computes, times in nanoseconds."""

    kernel: str
    nodes: str
    begin_ns: int
    end_ns: int


class Model:
    """A loaded model; any number of threads may run it at the same time.

    `run(inputs, outputs=None, time_limit=0.0)` takes one array per input, in the order of
    `inputs`: numpy arrays, or anything with `__dlpack__` or the buffer protocol in the cpu's
    memory; numbers and lists take the input's type. Arrays that are not dense are copied. It
    returns a list of numpy arrays: new ones, or those given as `outputs`. `time_limit` is in
    seconds, 0 for none.

    It raises `InputError` on a wrong count, `DTypeError` and `ShapeMismatchError` naming the input
    with what was expected and what came, `TimeLimitError`, `CancelledError`, and `RuntimeFailure`
    naming the node. The interpreter's lock is free while it computes.
    """

    __slots__ = ("_native", "inputs", "name", "outputs", "producer", "run", "symbols")

    def __init__(self, native: _runtime.NativeModel) -> None:
        self._native = native
        self.run = native.run
        self.name = native.name()
        self.producer = native.producer()
        self.inputs = tuple(TensorInfo(*row) for row in native.inputs())
        self.outputs = tuple(TensorInfo(*row) for row in native.outputs())
        self.symbols = native.symbols()
        """Least and greatest value per symbolic dimension."""

    def profile(
        self, inputs: Sequence[Any], capacity: int = 1 << 16
    ) -> tuple[list[Array], list[Launch]]:
        """Runs once and returns the outputs and the last `capacity` kernel launches, in order."""
        outputs, rows = self._native.profile(inputs, capacity)
        sites = [site.partition("\t") for site in self._native.sites()]
        return outputs, [Launch(sites[s][0], sites[s][2], begin, end) for s, begin, end in rows]

    def tensor_call(
        self,
        exchange: Any,
        classes: tuple[type, ...],
        declined: str,
        inputs: Sequence[tuple[int, bool, Sequence[int]]],
        outputs: Sequence[Sequence[int]],
        constants: Sequence[tuple[int, Any, bool]] = (),
    ) -> Callable[[Sequence[Any]], list[Any] | None]:
        """A function that runs the model with a framework's tensors, in one step.

        It takes a list or tuple of arguments and gives the outputs as new tensors; or None, without
        running, where an argument is not a dense tensor on the cpu of one of `classes` and of the
        input's type and rank, or its method `declined` is true (memory does not hold its elements).
        exchange: the classes' `__dlpack_c_exchange_api__`. inputs: for each
        its place among the arguments, whether it is an int, and the axes from the slowest to the
        fastest of a tensor that is dense in another order than row-major (the model takes it
        transposed so). outputs: likewise their axes. constants: tensors that must stand at these
        places, not written to since (their `_version` and address are compared, and where the third
        value is true, for dense ones, their contents); else None.
        """
        return _runtime.TensorCall(
            self._native, exchange, classes, declined, inputs, outputs, constants
        )

    def cancel(self) -> None:
        """Stops all runs in flight, from any thread: they raise `CancelledError`."""
        self._native.cancel()

    def close(self) -> None:
        """Frees the model's memory; later runs raise. Raises `RuntimeFailure` during a run."""
        self._native.close()

    @property
    def variant(self) -> str:
        """The instruction-set variant that runs on this cpu."""
        return self._native.variant()

    @property
    def variants(self) -> list[str]:
        """All variants in the artefact, the best first."""
        return self._native.variants()

    @property
    def threads(self) -> int:
        """How many threads one run uses at most."""
        return self._native.threads()

    @property
    def arena_bytes(self) -> int:
        """Bytes of intermediate values per run; of the largest run so far where dims vary."""
        return self._native.arena_bytes()

    @property
    def weights_bytes(self) -> int:
        """Bytes of the weights, embedded or not."""
        return self._native.weights_bytes()

    def __repr__(self) -> str:
        return f"<cuvil_runtime.Model {self.name!r}>"


def load(
    path: Path,
    *,
    weights: Weights = None,
    threads: int | None = None,
    variant: str | None = None,
    name: str | None = None,
    keep_denormals: bool = False,
    devices: Devices = None,
) -> Model:
    """Loads a compiled model: a shared library (`.so`) or an object (`.o`).

    Only load files you trust: they are code. `weights` (see `load_object`) defaults to the file
    beside `path`. `threads` None is all of the process-wide pool (CUVIL_NUM_THREADS, else the cpus
    this process may use). `variant` overrides the choice by cpu. `name` picks one of several
    models in a file. `devices`: name -> capsule, for a model that uses devices beside the cpu; by
    default those of installed backends. Raises `ArtefactError`, `TargetError` or `OptionError`.
    """
    path = os.fspath(path)
    kind = _elf_kind(path)
    if kind == _RELOCATABLE:
        return load_object(
            _read(path),
            weights=weights,
            threads=threads,
            variant=variant,
            name=name,
            keep_denormals=keep_denormals,
            devices=devices,
            origin=path,
            folder=os.path.dirname(os.path.abspath(path)),
        )
    if kind != _SHARED:
        raise ArtefactError(f"{path}: not a shared library or object that Cuvil made")
    symbol, count = _symbol(name), _threads(threads)
    native = _runtime.open_library(
        path, symbol, count, keep_denormals, variant, _weights(weights), _finder(devices)
    )
    return Model(native)


def load_object(
    code: bytes | bytearray | memoryview,
    *,
    weights: Weights = None,
    threads: int | None = None,
    variant: str | None = None,
    name: str | None = None,
    keep_denormals: bool = False,
    devices: Devices = None,
    origin: str = "object",
    folder: str = "",
    addresses: Mapping[str, int] | None = None,
) -> Model:
    """Loads a model from the bytes of an object file; no linker is needed.

    `weights`, where they are not embedded: the path of a weights file, a buffer that holds one
    (kept, not copied, when aligned to 64 bytes), or a callable `(offset, count)` that returns
    `count` bytes of it. By default the file the artefact names, in `folder`. `origin` names the
    object in errors. `addresses`: of the C functions that custom operators call, by symbol; they
    must stay where they are. The rest is as in `load`.
    """
    native = _runtime.open_object(
        code,
        origin,
        _symbol(name),
        _threads(threads),
        keep_denormals,
        variant,
        folder,
        _weights(weights),
        _finder(devices),
        addresses or {},
    )
    return Model(native)


def default_threads() -> int:
    """CUVIL_NUM_THREADS when set, else the cpus this process may use."""
    return _runtime.default_threads()


def _symbol(name: str | None) -> str | None:
    return None if name is None else f"{name}_artefact"


def _threads(threads: int | None) -> int:
    if threads is None:
        return 0
    if threads < 1:
        raise OptionError(f"threads: expected at least 1, got {threads}")
    return threads


def _weights(weights: Weights) -> Any:
    return os.fspath(weights) if isinstance(weights, os.PathLike) else weights


def _finder(devices: Devices) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        if devices is not None and name in devices:
            return devices[name]
        return import_module("cuvil_runtime.devices").installed_device(name)

    return find


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ArtefactError(f"{path}: {error.strerror}") from error


def _elf_kind(path: str) -> int:
    """The type field of an ELF file, 0 for another file."""
    try:
        with open(path, "rb") as file:
            head = file.read(18)
    except OSError as error:
        raise ArtefactError(f"{path}: {error.strerror}") from error
    return head[16] if len(head) == 18 and head[:4] == _ELF_MAGIC else 0
