"""Torch tensors in and out without a copy; torch is used only where the caller has imported it."""

from __future__ import annotations

from collections.abc import Sequence
from sys import modules
from typing import Any

import numpy as np

from cuvil.errors import InputError


def has_tensor(args: Sequence[Any]) -> bool:
    """Whether any argument is a torch tensor; torch must have been imported."""
    kind = getattr(modules["torch"], "Tensor", ())  # absent while torch itself is being imported
    for a in args:  # noqa: SIM110 - a loop, and arrays first: this is part of every call
        if type(a) is not np.ndarray and isinstance(a, kind):
            return True
    return False


def to_arrays(args: Sequence[Any]) -> list[Any]:
    """Arguments as the runtime takes them: tensors as views of their memory.

    Raises InputError for a tensor of another device or of a layout that is not dense or strided.
    """
    tensor = modules["torch"].Tensor
    return [_to_array(a) if isinstance(a, tensor) else a for a in args]


def to_tensors(outputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Arrays as torch tensors that share their memory; torch has no strings, which stay arrays."""
    return [_to_tensor(a) for a in outputs]


def _to_array(tensor: Any) -> Any:
    try:
        return tensor.numpy()
    except (TypeError, RuntimeError):  # all that is not plain, told apart below
        torch = modules["torch"]
    if tensor.device.type != "cpu":
        raise InputError(f"a tensor is on device '{tensor.device}': pass tensor.cpu()")
    if tensor.layout is not torch.strided:
        raise InputError(f"a tensor has layout {tensor.layout}: pass tensor.to_dense()")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        return plain  # by DLPack: torch gives numpy no bfloat16
    name = str(plain.dtype).removeprefix("torch.")
    if name.startswith("float8"):  # under the same names in ml_dtypes
        return plain.contiguous().view(torch.uint8).numpy().view(np.dtype(name))
    return plain.numpy()


def _to_tensor(array: np.ndarray[Any, Any]) -> Any:
    torch = modules["torch"]
    if array.dtype == object:
        return array
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if array.dtype.name.startswith("float8"):
        return torch.from_numpy(array.view(np.uint8)).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(array)
