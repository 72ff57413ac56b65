"""All examples of old operators."""

from __future__ import annotations

import opset_control
import opset_layers
import opset_pointwise
import opset_reductions
import opset_shapes
import opset_windows
from opset_example import Example

_MODULES = (
    opset_pointwise,
    opset_shapes,
    opset_reductions,
    opset_windows,
    opset_layers,
    opset_control,
)
ALL: list[Example] = [example for module in _MODULES for example in module.EXAMPLES.items]
