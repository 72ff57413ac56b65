"""Tensors of a model file as constants: onnx-ir's tensor objects never load or open anything."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from cuvil.errors import ModelError
from cuvil.frontends.onnx.opener import OpenedModel
from cuvil.ir.pool import Pool

__all__ = ["constant_key", "constant_texts", "tensor_proto"]


def tensor_proto(tensor: ir.TensorProtocol) -> onnx.TensorProto:
    """The message behind a tensor of a model that was read by `onnx_ir.from_proto`."""
    if isinstance(tensor, ir.serde.TensorProtoTensor):
        return tensor.raw
    if isinstance(tensor, ir.ExternalTensor):
        return _external(tensor)
    proto = onnx.TensorProto(name=tensor.name or "", data_type=int(tensor.dtype))
    proto.dims.extend(int(d) for d in tensor.shape)
    if isinstance(tensor, ir.StringTensor):
        proto.string_data.extend(tensor.string_data())
    return proto


def _external(tensor: ir.ExternalTensor) -> onnx.TensorProto:
    proto = onnx.TensorProto(
        name=tensor.name or "",
        data_type=int(tensor.dtype),
        data_location=onnx.TensorProto.EXTERNAL,
    )
    proto.dims.extend(int(d) for d in tensor.shape)
    entries = {"location": tensor.location, "offset": tensor.offset, "length": tensor.length}
    for key, value in entries.items():
        if value is not None:
            proto.external_data.add(key=key, value=str(value))
    return proto


def constant_texts(
    opened: OpenedModel, tensor: ir.TensorProtocol, node: str = ""
) -> np.ndarray | None:
    """The strings of a tensor of them, as an array of str; None for a tensor of numbers."""
    if tensor is None or int(tensor.dtype) != onnx.TensorProto.STRING:
        return None
    return opened.texts(tensor_proto(tensor), node)


def constant_key(opened: OpenedModel, tensor: ir.TensorProtocol, pool: Pool, node: str = "") -> str:
    """Adds a tensor to the pool, by reference where it is large; gives its key."""
    if tensor is None:
        raise ModelError(f"{opened.name}: node {node!r}: a tensor attribute without a tensor")
    return opened.constant(tensor_proto(tensor), pool, node).key
