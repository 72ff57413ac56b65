"""Pooling and transposed convolution against loops over their windows: rows B04 and B06."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.faults.cases import FORMS, Array, Model, check

RNG = np.random.default_rng(4)
NAN = float("nan")


def windows(n: int, k: int, s: int, p: tuple[int, int], d: int, ceil: bool) -> list[list[int]]:
    """The positions of each window on one axis; none begins in the padding behind."""
    reach = d * (k - 1) + 1
    count = (math.ceil if ceil else math.floor)((n + sum(p) - reach) / s) + 1
    if ceil and (count - 1) * s >= n + p[0]:
        count -= 1
    return [[i * s - p[0] + j * d for j in range(k)] for i in range(count)]


def pooled(x: Array, kind: str, axes: Sequence[list[list[int]]], ends: Sequence[int]) -> Array:
    """x is [1, 1, ...]; `ends` is where the padding behind each axis ends: beyond counts never."""
    image, out = x[0, 0], np.zeros([len(a) for a in axes])
    for at in np.ndindex(*out.shape):
        cells = list(itertools.product(*(axes[a][i] for a, i in enumerate(at))))
        inside = [image[c] for c in cells if all(0 <= v < n for v, n in zip(c, image.shape))]  # noqa: B905
        padded = [c for c in cells if all(v < e for v, e in zip(c, ends))]  # noqa: B905
        if kind == "MaxPool":
            out[at] = np.max(inside)
        else:
            count = len(padded) if kind == "padded" else len(inside)
            out[at] = np.sum(inside) / count if count else NAN
    return out[None, None]


CASES = [
    ((4, 4), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    ((7,), (3,), (3,), (0, 2), (1,)),
    ((5, 6), (2, 3), (1, 2), (0, 1, 1, 0), (2, 1)),
    ((9,), (2,), (3,), (1, 1), (3,)),
    ((3, 4, 3), (2, 2, 3), (2, 1, 2), (1, 0, 1, 0, 1, 1), (1, 1, 1)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_b04_windows_at_every_edge(kind: str, form: str) -> None:
    m, wants = Model(19, form), []
    for size, kernel, strides, pads, dilations in CASES:
        image = RNG.standard_normal((1, 1, *size)).astype(np.float32)
        x, n = m.feed(image), len(size)
        for ceil, include in itertools.product((0, 1), (0, 1) if kind == "AveragePool" else (0,)):
            how: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
            how |= {"dilations": dilations, "ceil_mode": ceil}
            if kind == "AveragePool":
                how["count_include_pad"] = include
            m.keep(m.op(kind, x, **how))
            axes = [windows(size[a], kernel[a], strides[a], (pads[a], pads[n + a]), dilations[a],
                            bool(ceil)) for a in range(n)]  # fmt: skip
            ends = [size[a] + pads[n + a] for a in range(n)]
            wants.append(pooled(image, "padded" if include else kind, axes, ends))
    for got, want in zip(m.run(), wants, strict=True):
        assert np.isfinite(want).all()
        check(got, want)


def transposed(x: Array, w: Array, strides: Any, dilations: Any, group: int) -> Array:
    """Every product added where it belongs; no padding is cut off."""
    (_, c, *size), (_, o, *kernel) = x.shape, w.shape
    span = [(n - 1) * s + (k - 1) * d + 1
            for n, s, k, d in zip(size, strides, kernel, dilations, strict=True)]  # fmt: skip
    out = np.zeros((1, o * group, *span), np.float64)
    for ci, at, tap in itertools.product(range(c), np.ndindex(*size), np.ndindex(*kernel)):
        place = tuple(i * s + t * d for i, s, t, d in zip(at, strides, tap, dilations, strict=True))
        g = ci * group // c
        out[(0, slice(g * o, g * o + o), *place)] += x[(0, ci, *at)] * w[(ci, slice(None), *tap)]
    return out


def cut(whole: Array, begin: Sequence[int], size: Sequence[int]) -> Array:
    """A part of the image; what lies behind the products is zero."""
    grown = np.pad(whole, [(0, 0)] * 2 + [(0, b + n) for b, n in zip(begin, size, strict=True)])
    return grown[(..., *(slice(b, b + n) for b, n in zip(begin, size, strict=True)))]


@pytest.mark.parametrize("form", ["fixed", "symbolic", "library"])
def test_b06_transposed_convolutions(form: str) -> None:
    m, wants = Model(17, form), []
    for size, kernel, strides, dilations, group in (
        ((2, 2), (3, 3), (1, 1), (1, 1), 1), ((2, 2), (3, 3), (2, 2), (1, 1), 1),
        ((3, 2), (2, 3), (3, 2), (1, 2), 2), ((4,), (4,), (2,), (1,), 1),
        ((3,), (2,), (4,), (2,), 2),
    ):  # fmt: skip
        image = RNG.standard_normal((1, 2, *size)).astype(np.float32)
        w = RNG.standard_normal((2, 2, *kernel)).astype(np.float32)
        whole = transposed(image, w, strides, dilations, group)
        x, filters = m.feed(image), m.const(w)
        base = {"strides": strides, "dilations": dilations, "group": group}
        for extra in (0, 1) if max(strides) > 1 else (0,):
            adds = [extra if s > 1 else 0 for s in strides]
            for auto in ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"):
                m.keep(
                    m.op("ConvTranspose", x, filters, auto_pad=auto, output_padding=adds, **base)
                )
                span, begin = list(whole.shape[2:]), [0] * len(size)
                out = [a + b for a, b in zip(span, adds, strict=True)]
                if auto.startswith("SAME"):
                    out = [n * s for n, s in zip(size, strides, strict=True)]
                    lost = [a + b - c for a, b, c in zip(span, adds, out, strict=True)]
                    begin = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in lost]
                    if min(lost) < 0:
                        m.kept.pop()
                        continue
                wants.append(cut(whole, begin, out))
            pads = [1] * len(size) + [0] * len(size)
            m.keep(m.op("ConvTranspose", x, filters, pads=pads, output_padding=adds, **base))
            out = [a + b - 1 for a, b in zip(whole.shape[2:], adds, strict=True)]
            wants.append(cut(whole, pads[: len(size)], out))
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want, 1e-4, 1e-5)
