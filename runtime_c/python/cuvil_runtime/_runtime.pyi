from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

ABI_VERSION: int

class NativeModel:
    def run(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray[Any, Any]] | None = None,
        time_limit: float = 0.0,
    ) -> list[np.ndarray[Any, Any]]: ...
    def profile(
        self, inputs: Sequence[Any], capacity: int = 65536
    ) -> tuple[list[np.ndarray[Any, Any]], list[tuple[int, int, int]]]: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def inputs(self) -> list[tuple[str, str, tuple[int | str | None, ...]]]: ...
    def outputs(self) -> list[tuple[str, str, tuple[int | str | None, ...]]]: ...
    def symbols(self) -> dict[str, tuple[int, int]]: ...
    def sites(self) -> list[str]: ...
    def variants(self) -> list[str]: ...
    def name(self) -> str: ...
    def producer(self) -> str: ...
    def weights_bytes(self) -> int: ...
    def variant(self) -> str: ...
    def threads(self) -> int: ...
    def arena_bytes(self) -> int: ...

class TensorCall:
    def __init__(
        self,
        model: NativeModel,
        exchange: Any,
        classes: tuple[type, ...],
        declined: str,
        inputs: Sequence[tuple[int, bool, Sequence[int]]],
        outputs: Sequence[Sequence[int]],
        constants: Sequence[tuple[int, Any, bool]],
    ) -> None: ...
    def __call__(self, args: Sequence[Any]) -> list[Any] | None: ...

def open_object(
    object: Any,
    origin: str,
    symbol: str | None,
    threads: int,
    keep_denormals: bool,
    variant: str | None,
    folder: str,
    weights: Any,
    find_device: Callable[[str], Any],
    addresses: Mapping[str, int] = ...,
) -> NativeModel: ...
def open_library(
    path: str,
    symbol: str | None,
    threads: int,
    keep_denormals: bool,
    variant: str | None,
    weights: Any,
    find_device: Callable[[str], Any],
) -> NativeModel: ...
def open_device(path: str, symbol: str) -> Any: ...
def default_threads() -> int: ...

MAX_PARAMETERS: int

class NativeFunction:
    """A compiled Python function; `cuvil.jit` makes them."""

    _compiler: Any
    _interpreted: bool
    _closed: bool
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def make_function(
    python: Any, compiler: Any, names: tuple[str, ...], defaults: tuple[Any, ...]
) -> NativeFunction: ...
def load_function(object: bytes, symbol: str) -> tuple[int, Any]: ...
def add_code(
    function: NativeFunction,
    entry: int,
    keeper: Any,
    parameters: list[str],
    result: str,
    calls: list[tuple[Any, str | None, list[str], str]],
    guards: list[tuple[Any, str | None, Any]],
    written: list[bool],
    pure: bool,
    more: list[Any],
) -> None: ...
def array_text(object: Any) -> str: ...
def tensor_text(object: Any) -> str: ...
def use_tensors(
    tensor: type,
    view: Callable[..., Any],
    share: Callable[..., Any],
    element: Callable[..., Any],
    written: Callable[..., None],
) -> None: ...
