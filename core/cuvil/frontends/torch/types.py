"""Torch's element types by Cuvil's names, and the types of values that torch has seen."""

from __future__ import annotations

from typing import Any

import torch

from cuvil.errors import UnsupportedError
from cuvil.frontends.torch.dims import dims_of
from cuvil.ir.types import TensorType

__all__ = ["ELEMENTS", "element_of", "tensor_type_of"]

ELEMENTS: dict[torch.dtype, str] = {
    torch.bool: "bool",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2: "f8e5m2",
    torch.float8_e5m2fnuz: "f8e5m2fnuz",
}


def element_of(dtype: torch.dtype) -> str:
    """Cuvil's name of an element type. UnsupportedError when it has none."""
    found = ELEMENTS.get(dtype)
    if found is None:
        raise UnsupportedError(f"element type {str(dtype).removeprefix('torch.')} is not supported")
    return found


def tensor_type_of(value: Any) -> TensorType:
    """The type of a tensor, fake or real. UnsupportedError for one that Cuvil cannot hold."""
    if value.layout is not torch.strided:
        raise UnsupportedError(f"a tensor of layout {value.layout} is not supported")
    if value.device.type not in ("cpu", "meta"):
        raise UnsupportedError(f"a tensor on device '{value.device}' is not supported")
    return TensorType.of(dims_of(value.shape), element_of(value.dtype))
