"""Seeded random inputs in the range that each kind of model input takes in real use."""

from __future__ import annotations

import numpy as np

from tools.models.case import Fill, Shape


def image(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """float32 of mean 0 and deviation 1: blotches of three sizes, as left by normalisation.

    White noise would look alike to a network that averages over the picture, at every seed.
    """
    octaves = [_blotches(rng, shape, size) for size in (1, 8, 56)]
    return (sum(octaves) / np.sqrt(3)).astype(np.float32)


def unit_image(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """float32 pixels in [0, 1], blotches as in `image`."""
    return np.clip(image(rng, shape) * np.float32(0.25) + np.float32(0.5), 0, 1)


def text_page(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """float32 in [-1, 1]: dark glyph-like strokes in lines on light paper, one page per image.

    Noise alone leaves an OCR detector so sure that its output is all but zero, where ONNX
    Runtime's sigmoid has few right digits; and hard contrast drives the hidden values so high
    that any two engines part. Pale print avoids both.
    """
    batch, channels, height, width = shape
    strokes = rng.random((batch, 1, height // 2 + 1, width // 2 + 1)) < 0.5
    strokes = strokes.repeat(2, axis=2).repeat(2, axis=3)[:, :, :height, :width]
    lines = (np.arange(height) % 40 < 16)[:, None] | (height <= 48)
    words = rng.random((batch, 1, 1, width // 40 + 1)).repeat(40, axis=3)[..., :width] < 0.6
    letters = np.arange(width) % 10 < 8
    tint = rng.normal(0, 0.03, (batch, channels, 1, 1))
    page = 0.9 - 0.2 * (strokes & lines & words & letters) + tint + rng.normal(0, 0.02, shape)
    return (np.clip(page, 0, 1) * 2 - 1).astype(np.float32)


def audio(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """float32 samples: a few partials and noise, within [-1, 1]."""
    time = np.arange(shape[-1]) / 16000
    pitch = rng.uniform(90, 260, shape[:-1] + (1,))
    voiced = sum(np.sin(2 * np.pi * pitch * k * time + k) / k for k in range(1, 9))
    noise = rng.standard_normal(shape) * 0.02
    return np.clip(0.2 * voiced + noise, -1, 1).astype(np.float32)


def hidden_state(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """float32 in (-1, 1): what an LSTM carries from call to call."""
    return np.tanh(rng.standard_normal(shape) * 0.5).astype(np.float32)


def file_bytes(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """int32 byte values, the tail of each row padded with 256 as for a short file."""
    values = rng.integers(0, 256, shape, dtype=np.int32)
    values[..., shape[-1] * 3 // 4 :] = 256
    return values


def _blotches(rng: np.random.Generator, shape: Shape, size: int) -> np.ndarray:
    """Standard normal values, each covering `size` x `size` pixels of its plane."""
    *planes, height, width = shape
    coarse = rng.standard_normal((*planes, -(-height // size), -(-width // size)))
    return coarse.repeat(size, axis=-2).repeat(size, axis=-1)[..., :height, :width]


def token_ids(vocabulary: int) -> Fill:
    """A filler of int64 ids in [0, vocabulary)."""

    def fill(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        return rng.integers(0, vocabulary, shape, dtype=np.int64)

    return fill


def constant(value: int) -> Fill:
    """A filler of int64 tensors of one value: masks, segment ids, sample rates."""

    def fill(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        return np.full(shape, value, dtype=np.int64)

    return fill
