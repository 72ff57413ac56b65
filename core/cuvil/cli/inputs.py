"""Inputs as the command line says them: files, random numbers, zeros, or JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes  # noqa: F401 - makes numpy know "bfloat16"
import numpy as np

from cuvil.engine.engine import Engine
from cuvil.errors import InputError, OptionError
from cuvil.ir.dtypes import from_numpy
from cuvil_runtime import TensorInfo

Array = np.ndarray[Any, Any]
WORD = 5  # letters of a random word
ANY = ""
"""The name under which a value without a name is kept: for all inputs that have none."""


def parse_inputs(words: Sequence[str] | None, names: Sequence[str]) -> dict[str, str]:
    """Name -> value from `NAME=VALUE` or `VALUE`. InputError for a name the model has not."""
    given: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not equals:
            name, value = ANY, word
        elif name not in names:
            raise InputError(f"no input is called '{name}'; the inputs are: {', '.join(names)}")
        given[name] = value
    return given


def make_inputs(
    engine: Engine,
    words: Sequence[str] | None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    default: str | None = None,
) -> dict[str, Array]:
    """An array for every input of an engine; see `inputs_for`."""
    return inputs_for(engine.get_inputs(), engine.model.symbols, words, sizes, seed, default)


def inputs_for(
    inputs: Sequence[TensorInfo],
    symbols: Mapping[str, tuple[int, int | None]],
    words: Sequence[str] | None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    default: str | None = None,
) -> dict[str, Array]:
    """An array for every input, as the words of a command line say.

    symbols: least and greatest value of each. sizes: extents of symbolic dims where arrays are made
    up; others take their least value, at least 1. default: the value of inputs that `words` do not
    name.

    InputError for an input without a value, OptionError for a value that cannot be read.
    """
    _check_sizes(sizes or {}, inputs)
    least = {name: max(1, low) for name, (low, _) in symbols.items()}
    extents = {**least, **(sizes or {})}
    given = parse_inputs(words, [i.name for i in inputs])
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for tensor in inputs:
        value = given.get(tensor.name, given.get(ANY, default))
        if value is None:
            raise InputError(
                f"missing input '{tensor.name}' ({described(tensor)}): "
                f"pass --input {tensor.name}=FILE.npy, or --input random for all"
            )
        arrays[tensor.name] = _array(tensor, value, extents, rng)
    return arrays


def _check_sizes(sizes: Mapping[str, int], inputs: Sequence[TensorInfo]) -> None:
    free = list(dict.fromkeys(d for i in inputs for d in i.dims if isinstance(d, str)))
    for name in sizes:
        if name not in free:
            known = ", ".join(free) or "none"
            raise OptionError(f"--size {name}: no such symbolic dim; there are: {known}")


def described(tensor: TensorInfo) -> str:
    """`float32 [N, 3]`."""
    dims = ", ".join("?" if d is None else str(d) for d in tensor.dims)
    return f"{tensor.dtype} [{dims}]"


def _array(
    tensor: TensorInfo, value: str, sizes: Mapping[str, int], rng: np.random.Generator
) -> Array:
    if tensor.dtype == "string":
        return _strings(tensor, value, sizes, rng)
    word, *bounds = value.split(":")
    if word in ("zeros", "ones") and not bounds:
        fill = np.zeros if word == "zeros" else np.ones
        return fill(_shape(tensor, sizes), np.dtype(tensor.dtype))
    if word == "random":
        return _random(tensor, _shape(tensor, sizes), bounds, rng)
    if value.endswith((".npy", ".npz")) or os.path.exists(value):
        return _loaded(tensor, value)
    try:
        return np.asarray(json.loads(value)).astype(tensor.dtype)
    except (ValueError, TypeError):
        raise OptionError(
            f"--input {tensor.name}={value}: no such file, and neither random, zeros, ones nor "
            "numbers as JSON"
        ) from None


def _strings(
    tensor: TensorInfo, value: str, sizes: Mapping[str, int], rng: np.random.Generator
) -> Array:
    """Empty strings, random words, a file, or strings as JSON."""
    shape = _shape(tensor, sizes)
    if value == "zeros":
        return np.full(shape, "", object)
    if value == "random":
        letters = rng.integers(ord("a"), ord("z") + 1, (math.prod(shape), WORD)).tolist()
        words = ["".join(map(chr, row)) for row in letters]
        return np.array([*words, None], object)[:-1].reshape(shape)
    if value.endswith((".npy", ".npz")) or os.path.exists(value):
        return _loaded(tensor, value)
    try:
        found = np.array(json.loads(value), object)
    except ValueError:
        found = np.array(None, object)
    if not all(isinstance(item, str) for item in found.ravel()):
        raise OptionError(
            f"--input {tensor.name}={value}: no such file, and neither random, zeros nor strings "
            'as JSON, such as \'["a", "b"]\''
        )
    return found


def _loaded(tensor: TensorInfo, path: str) -> Array:
    try:
        found = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"--input {tensor.name}={path}: {error.strerror or error}") from None
    except (ValueError, EOFError):  # numpy's own words advise to unpickle it
        raise InputError(
            f"--input {tensor.name}={path}: not a .npy or .npz file of numbers"
        ) from None
    if isinstance(found, np.ndarray):
        return found
    if tensor.name not in found:
        raise InputError(f"{path} holds no '{tensor.name}'; there are: {', '.join(found)}")
    return np.asarray(found[tensor.name])


def _shape(tensor: TensorInfo, sizes: Mapping[str, int]) -> list[int]:
    return [d if isinstance(d, int) else sizes.get(str(d), 1) for d in tensor.dims]


def _random(
    tensor: TensorInfo, shape: Sequence[int], bounds: Sequence[str], rng: np.random.Generator
) -> Array:
    """Normal floats, 0 or 1 for integers; uniform from LOW to HIGH where these are given."""
    dtype = np.dtype(tensor.dtype)
    try:
        low, high = map(float, bounds) if bounds else (0.0, 2.0)
    except ValueError:
        raise OptionError(f"--input {tensor.name}: expected random:LOW:HIGH") from None
    if not from_numpy(dtype).is_float:
        if not low < high:
            raise OptionError(f"--input {tensor.name}: LOW must be below HIGH")
        return rng.integers(int(low), int(high), shape).astype(dtype)
    values = rng.uniform(low, high, shape) if bounds else rng.standard_normal(shape)
    return np.asarray(values).astype(dtype)
