"""Functions that `tools.bench.jit` times: what stands before and behind a model in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A function and how to make its arguments."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def add(a, b):
    """The cost of a call."""
    return a + b


def process_names(items: list[str]) -> dict[str, int]:
    """How often each name occurs, whatever its case and the space around it."""
    counts = {}
    for item in items:
        name = item.strip().lower()
        if name in counts:
            counts[name] += 1
        else:
            counts[name] = 1
    return counts


def norms(pairs):
    """The length of each of a list of vectors."""
    return [math.sqrt(x**2 + y**2) for x, y in pairs]


def norm_sum(pairs):
    """The sum of their lengths."""
    total = 0.0
    for x, y in pairs:
        total += math.sqrt(x**2 + y**2)
    return total


def preprocess(image, height, width, mean, std):
    """Nearest-neighbour resize, normalise, and channels first."""
    out = np.empty((3, height, width), dtype=np.float32)
    rows, columns = image.shape[0], image.shape[1]
    for y in range(height):
        sy = y * rows // height
        for x in range(width):
            sx = x * columns // width
            for c in range(3):
                out[c, y, x] = (image[sy, sx, c] / 255.0 - mean[c]) / std[c]
    return out


def decode_and_nms(deltas, anchors, scores, threshold, limit):
    """Boxes from anchors and deltas, the best first, without those that overlap a better one."""
    n = anchors.shape[0]
    boxes = np.empty((n, 4), dtype=np.float64)
    for i in range(n):
        w = anchors[i, 2] - anchors[i, 0]
        h = anchors[i, 3] - anchors[i, 1]
        cx = anchors[i, 0] + 0.5 * w + deltas[i, 0] * w
        cy = anchors[i, 1] + 0.5 * h + deltas[i, 1] * h
        boxes[i, 0] = cx - 0.5 * w
        boxes[i, 1] = cy - 0.5 * h
        boxes[i, 2] = cx + 0.5 * w
        boxes[i, 3] = cy + 0.5 * h
    order = np.argsort(-scores)
    dead = np.zeros(n, dtype=np.bool_)
    kept = np.empty(n, dtype=np.int64)
    count = 0
    for a in range(n):
        i = order[a]
        if scores[i] < limit:
            break
        if dead[i]:
            continue
        kept[count] = i
        count += 1
        area = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
        for b in range(a + 1, n):
            j = order[b]
            if dead[j]:
                continue
            left = max(boxes[i, 0], boxes[j, 0])
            top = max(boxes[i, 1], boxes[j, 1])
            right = min(boxes[i, 2], boxes[j, 2])
            bottom = min(boxes[i, 3], boxes[j, 3])
            if right > left and bottom > top:
                shared = (right - left) * (bottom - top)
                other = (boxes[j, 2] - boxes[j, 0]) * (boxes[j, 3] - boxes[j, 1])
                if shared > threshold * (area + other - shared):
                    dead[j] = True
    return kept[:count]


def top_labels(logits, labels, k):
    """The k labels of the greatest softmax probabilities."""
    n = len(logits)
    top = logits[0]
    for i in range(n):
        top = max(top, logits[i])
    total = 0.0
    for i in range(n):
        total += math.exp(logits[i] - top)
    used = np.zeros(n, dtype=np.bool_)
    found = []
    for _ in range(k):
        best = -1
        for i in range(n):
            if not used[i] and (best < 0 or logits[i] > logits[best]):
                best = i
        used[best] = True
        found.append((labels[best], math.exp(logits[best] - top) / total))
    return found


def sum_rows(a):
    """Sums of squares along rows."""
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            total += a[i, j] * a[i, j]
        out[i] = total
    return out


def smooth(a):
    """The mean of each element and its neighbours."""
    out = np.empty(len(a))
    out[0], out[len(a) - 1] = a[0], a[len(a) - 1]
    for i in range(1, len(a) - 1):
        out[i] = (a[i - 1] + a[i] + a[i + 1]) / 3.0
    return out


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def _names() -> tuple[Any, ...]:
    words = [f"  Name{i}" if i % 3 else f"NAME{i} " for i in range(50)]
    return ([words[i] for i in _random().integers(0, 50, 20_000)],)


def _pairs() -> tuple[Any, ...]:
    return ([(float(x), float(y)) for x, y in _random().normal(size=(20_000, 2))],)


def _image() -> tuple[Any, ...]:
    image = _random().integers(0, 256, (120, 160, 3), dtype=np.uint8)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return image, 64, 64, mean, std


def _boxes() -> tuple[Any, ...]:
    r = _random()
    corner = r.uniform(0, 200, (300, 2))
    anchors = np.concatenate((corner, corner + r.uniform(10, 60, (300, 2))), axis=1)
    return r.normal(size=(300, 2)) * 0.1, anchors, r.uniform(size=300), 0.5, 0.1


def _logits() -> tuple[Any, ...]:
    return _random().normal(size=1000), [f"label {i}" for i in range(1000)], 5


CASES: dict[str, Case] = {
    "add": Case(add, lambda: (1, 2)),
    "names": Case(process_names, _names),
    "norms": Case(norms, _pairs),
    "norm_sum": Case(norm_sum, _pairs),
    "preprocess": Case(preprocess, _image),
    "nms": Case(decode_and_nms, _boxes),
    "top_labels": Case(top_labels, _logits),
    "sum_rows": Case(sum_rows, lambda: (_random().normal(size=(200, 300)),)),
    "smooth": Case(smooth, lambda: (_random().normal(size=20_000),)),
}
