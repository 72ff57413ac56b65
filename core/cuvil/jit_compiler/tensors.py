"""What the runtime needs to know of torch once a caller passes a tensor; torch is not imported."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np

from cuvil.jit_compiler.frontend.source import Unsupported
from cuvil_runtime import _runtime


def torch_module() -> Any:
    """torch where the program has imported it, else None."""
    return sys.modules.get("torch")


def is_tensor(value: object) -> bool:
    """Whether it is a tensor of torch's, of any kind."""
    torch = torch_module()
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def tensor_code(value: object) -> str | None:
    """The type text of a tensor; None for what is none. Raises Unsupported."""
    if not is_tensor(value):
        return None
    torch = torch_module()
    _use(torch)
    text: str = _runtime.tensor_text(value)
    if not text:
        raise Unsupported(_why_not(torch, value))
    return text


@lru_cache(maxsize=1)
def _use(torch: Any) -> None:
    """Gives the runtime what it calls. Raises Unsupported where torch is older than 2.10."""
    if torch.get_default_dtype() is not torch.float32:
        raise Unsupported(f"tensors beside the default type {torch.get_default_dtype()}")
    try:
        _runtime.use_tensors(torch.Tensor, _part, torch.from_numpy, _element, _written)
    except AttributeError as error:
        raise Unsupported(f"tensors need torch 2.10 or later: {error}") from None


def _part(tensor: Any, address: int, extents: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The tensor itself, or a view of it. strides: in bytes."""
    size = tensor.element_size()
    steps = tuple(s // size for s in strides)
    offset = (address - tensor.data_ptr()) // size
    if offset == 0 and tuple(tensor.shape) == extents and tensor.stride() == steps:
        return tensor
    return tensor.as_strided(extents, steps, tensor.storage_offset() + offset)


def _element(scalar: np.generic) -> Any:
    return torch_module().from_numpy(np.array(scalar))


def _written(tensor: Any) -> None:
    """Counts as torch counts its own writes."""
    if not tensor.is_inference():
        torch_module().autograd.graph.increment_version(tensor)


def _why_not(torch: Any, value: Any) -> str:
    if type(value) is not torch.Tensor:
        return f"an argument of type {type(value).__name__}"
    if value.requires_grad:
        return "a tensor that requires gradients: pass tensor.detach()"
    if value.layout is not torch.strided or value.device.type != "cpu":
        return f"a tensor of layout {value.layout} on {value.device}"
    if value.dim() == 0:
        return "a tensor of rank 0: pass tensor.item()"
    return f"a tensor of {value.dtype} and rank {value.dim()}"
