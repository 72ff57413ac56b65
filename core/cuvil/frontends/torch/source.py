"""Where an fx node comes from: the line of the user's source, for messages and locations."""

from __future__ import annotations

import os
import re
from typing import Any

__all__ = ["line_of", "location_of", "where_of"]

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (.+)')


def line_of(node: Any) -> tuple[str, int, str] | None:
    """(file, line, function) of the innermost frame that torch noted; None where it has none."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    path, number, function = frames[-1]
    return path, int(number), function


def location_of(node: Any) -> str:
    """A short name of a node's origin, for kernels and profiles: `model.py:12/addmm`."""
    line = line_of(node)
    return f"{os.path.basename(line[0])}:{line[1]}/{node.name}" if line else str(node.name)


def where_of(node: Any, module: str) -> str:
    """A node for messages: module, node, operator and the user's line."""
    line = line_of(node)
    at = f" at {line[0]}:{line[1]} in {line[2]}" if line else ""
    return f"{module}: node '{node.name}' ({node.target}){at}"
