"""What attention with grouped heads has in common, whichever front it comes from."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ops.compose.context import Cx, Value

__all__ = ["repeated_heads"]


def repeated_heads(cx: Cx, x: Value, heads: Dim) -> Value:
    """Keys or values [B, own, S, D] of grouped heads, one for each query head."""
    batch, own, steps, width = cx.dims(x)
    if own == heads:
        return x
    group = heads // own
    whole = cx.b.broadcast(
        cx.b.reshape(x, dims=(batch, own, 1, steps, width)), dims=(batch, own, group, steps, width)
    )
    return cx.b.reshape(whole, dims=(batch, heads, steps, width))
