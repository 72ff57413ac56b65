"""Running a function compiled and as it is, and comparing what comes out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import cuvil


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gives, or raises, and what it makes of its arguments."""
    given = copy.deepcopy(args)
    try:
        result = function(*given)
    except Exception as error:
        return type(error), str(error), given
    return "result", result, given


def alike(a: Any, b: Any) -> bool:
    """Equal and of the same types, all the way down; nan is nan, and -0.0 is not 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return alike(list(a.items()), list(b.items()))
    if isinstance(a, np.ndarray):
        close = np.allclose(a, b, rtol=1e-6, atol=1e-12, equal_nan=True)
        return a.dtype == b.dtype and a.shape == b.shape and bool(close)
    if isinstance(a, np.floating):
        return a.dtype == b.dtype and bool(np.isclose(a, b, rtol=1e-6, equal_nan=True))
    return repr(a) == repr(b)


def check(function: Callable[..., Any], *calls: tuple[Any, ...], native: bool = True) -> None:
    """The function compiled does what it does in the interpreter, for each tuple of arguments."""
    jitted = cuvil.jit(function)
    for args in calls:
        expected, found = outcome(function, args), outcome(jitted, args)
        assert alike(found, expected), f"{args}: {found} instead of {expected}"
    explanation = cuvil.explain(jitted)
    assert explanation.native == native, str(explanation)
    assert not (native and explanation.reasons), str(explanation)
