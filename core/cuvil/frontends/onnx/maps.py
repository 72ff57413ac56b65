"""Map types, which onnx-ir cannot read and which have no tensor form."""

from __future__ import annotations

import onnx

from cuvil.errors import UnsupportedError

__all__ = ["drop_map_types"]


def drop_map_types(model: onnx.ModelProto, name: str) -> None:
    """Takes types that contain maps from the values of a graph, so that nodes can be looked at.

    What makes or takes a map is then refused by its record. UnsupportedError for an input.
    """
    for value in model.graph.input:
        if _has_map(value.type):
            raise UnsupportedError(
                f"{name}: input {value.name!r} is a map, which has no tensor form; give the model "
                "a tensor with a column for each key"
            )
    for value in (*model.graph.output, *model.graph.value_info):
        if _has_map(value.type):
            value.ClearField("type")


def _has_map(kind: onnx.TypeProto) -> bool:
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        return _has_map(getattr(kind, which).elem_type)
    return bool(which == "map_type")
