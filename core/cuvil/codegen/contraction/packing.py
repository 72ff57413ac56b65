"""The packed form of B, in numpy: the meaning that constant recipes and tests share."""

import numpy as np


def packed_size(k: int, n: int, panel: int) -> int:
    """Elements of one packed [k, n] matrix."""
    return -(-n // panel) * k * panel


def pack_panels(b: np.ndarray, panel: int) -> np.ndarray:
    """[batch..., k, n] to [batch..., ceil(n/panel), k, panel]; columns past n are zero."""
    *batch, k, n = b.shape
    panels = -(-n // panel)
    padded = np.zeros((*batch, k, panels * panel), b.dtype)
    padded[..., :n] = b
    return np.ascontiguousarray(np.moveaxis(padded.reshape(*batch, k, panels, panel), -2, -3))


def unpack_panels(packed: np.ndarray, n: int) -> np.ndarray:
    """The inverse of `pack_panels`: [batch..., panels, k, panel] to [batch..., k, n]."""
    *batch, panels, k, panel = packed.shape
    return np.moveaxis(packed, -3, -2).reshape(*batch, k, panels * panel)[..., :n]
