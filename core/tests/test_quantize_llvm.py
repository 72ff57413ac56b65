"""Floats become codes, and numbers again: compiled code against the numpy meaning, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request
from cuvil.ir.dtypes import dtype
from cuvil.ops.scalars import evaluate

LANES = 4
REQUESTS = [
    Request(name, "f32", {"to": to}, LANES)
    for name in ("quantize", "fake_quantize")
    for to in ("u8", "i8", "u16", "i16")
]


@pytest.fixture(scope="module")
def functions() -> ArrayFunctions:
    return ArrayFunctions(REQUESTS, level=1)


def numbers() -> np.ndarray:
    """Every half between the limits and far beyond them, their neighbours, and what is special."""
    halves = np.arange(-70000, 70000, 0.5, np.float32)
    near = [np.nextafter(halves, np.float32(s * np.inf)) for s in (1, -1)]
    powers = np.float32(2) ** np.arange(15, 128, dtype=np.float32)
    special = np.float32([np.inf, np.nan, 0.0, 1e-40, 3e38])
    return np.concatenate([halves, *near, powers, -powers, special, -special])


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: f"{r.name}-{r.attrs['to']}")
@pytest.mark.parametrize("part", [0, 0.3, 0.51, 1])
def test_every_rounding_is_the_meaning(
    functions: ArrayFunctions, request_: Request, part: float
) -> None:
    limits = np.iinfo(dtype(request_.attrs["to"]).numpy)
    zero = np.float32(int(limits.min + part * (limits.max - limits.min)))
    x = numbers()
    x = x[: x.size // LANES * LANES]
    zeros = np.full_like(x, zero)
    got = functions(request_, x, zeros)
    assert got.tobytes() == (evaluate(request_.name, x, zeros, **request_.attrs) + 0).tobytes()
