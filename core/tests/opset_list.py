"""All examples of old operators."""

from __future__ import annotations

import opset_pointwise
import opset_shapes
from opset_example import Example

ALL: list[Example] = [
    *opset_pointwise.EXAMPLES.items,
    *opset_shapes.EXAMPLES.items,
]
