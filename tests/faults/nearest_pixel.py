"""Which pixel Resize takes where it takes the nearest one, in each of its ways."""

from __future__ import annotations

import numpy as np


def nearest(size: int, out: int, scale: float, coordinate: str, mode: str) -> list[int]:
    """Which element each result element is, by the formulas of the ONNX text."""
    found = []
    for i in range(out):
        if coordinate == "half_pixel":
            x = (i + 0.5) / scale - 0.5
        elif coordinate == "pytorch_half_pixel":
            x = (i + 0.5) / scale - 0.5 if out > 1 else 0.0
        elif coordinate == "align_corners":
            x = i * (size - 1) / (out - 1) if out > 1 else 0.0
        elif coordinate == "asymmetric":
            x = i / scale
        else:  # half_pixel_symmetric
            adjustment = out / (scale * size)
            center = size / 2
            x = center * (1 - adjustment) + (i + 0.5) / scale - 0.5
        rounded = {
            "round_prefer_floor": np.ceil(x - 0.5),
            "round_prefer_ceil": np.floor(x + 0.5),
            "floor": np.floor(x),
            "ceil": np.ceil(x),
        }[mode]
        found.append(int(np.clip(rounded, 0, size - 1)))
    return found


COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric",
)  # fmt: skip
MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
