"""The live tensors that code was made of, and whether they still are what they were then."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any
from weakref import ref

import torch
from torch.utils._pytree import tree_leaves

from cuvil.frontends.torch.constants import bytes_of

__all__ = ["Weights", "is_small_buffer"]

SMALL = 16 << 10
"""Bytes of a buffer whose contents are compared."""

Named = tuple[str, Any]
Place = tuple[str, torch.nn.Module, str, str]  # name, owner, which of its dicts, key


def is_small_buffer(x: torch.Tensor) -> bool:
    """Whether the contents of a tensor are compared: batch norm writes its statistics without
    counting a version."""
    small = x.numel() * x.element_size() <= SMALL
    return small and not isinstance(x, torch.nn.Parameter) and x.is_contiguous()


class Weights:
    """Parameters, buffers and other tensors of a module, function or program whose memory is
    among `used`, in the state that they have now.

    Neither is kept alive, and what is gone counts as unchanged. Seen are writes that torch counts
    (in place, `load_state_dict`, optimizers), other memory (`.data = `, `half()`), other tensors or
    modules in the place of those that there were, and all changes of small buffers. Not seen are
    writes to parameters through `.data`, `.numpy()` and the like, and any to those that were made
    in inference mode, which have no version.
    """

    def __init__(self, model: Any, used: Iterable[torch.Tensor]) -> None:
        wanted = {x.data_ptr() for x in used if x.numel()}
        self._kept: dict[ref[torch.Tensor], tuple[torch.Tensor, Any]] = {}
        self._tensors: list[tuple[ref[torch.Tensor], int | None, int, str]] = []
        self._small: list[tuple[ref[torch.Tensor], bytes, str]] = []
        self._places: list[tuple[ref[Any], str, str, ref[Any], str]] = []
        seen: set[int] = set()
        for root_name, root in _roots(model):
            owners: dict[str, None] = {}
            for name, tensor, place in _tensors_of(root_name, root):
                if tensor.data_ptr() not in wanted:
                    continue
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    self._watch(name, tensor)
                if place is not None:
                    self._watch_place(place, tensor)
                    owners[place[0].rpartition(".")[0]] = None
            for place, child in _modules_to(root_name, root, owners):
                self._watch_place(place, child)

    def _watch(self, name: str, tensor: torch.Tensor) -> None:
        version = None if tensor.is_inference() else tensor._version
        holder = ref(tensor, self._kept.pop)
        small = bytes_of(tensor) if is_small_buffer(tensor) else None
        self._kept[holder] = tensor.detach(), small  # or new memory could be where the old was
        self._tensors.append((holder, version, tensor.data_ptr(), name))
        if small is not None:
            self._small.append((holder, small.tobytes(), name))

    def _watch_place(self, place: Place, found: Any) -> None:
        name, owner, kind, key = place
        self._places.append((ref(owner), kind, key, ref(found), name))

    def changed(self) -> str | None:
        """The name of one that is no longer what it was, or None."""
        for holder, version, address, name in self._tensors:
            tensor = holder()
            if tensor is not None and (
                tensor.data_ptr() != address or (version is not None and tensor._version != version)
            ):
                return name
        for holder, contents, name in self._small:
            kept = self._kept.get(holder)
            if kept is not None and kept[1].tobytes() != contents:
                return name
        for at, kind, key, child, name in self._places:
            owner, found = at(), child()
            if owner is not None:
                held = owner.__dict__[kind] if kind else owner.__dict__
                if found is None or held.get(key) is not found:
                    return name
        return None


def _roots(model: Any) -> Iterator[Named]:
    """What a module, program, method or function takes weights from."""
    if inspect.ismethod(model):
        yield "", model.__self__
        yield from _roots(model.__func__)
    elif inspect.isfunction(model):
        for name, value in _named_in(model):
            if isinstance(value, torch.nn.Module | torch.Tensor):
                yield name, value
    else:
        yield "", model


def _named_in(function: FunctionType) -> Iterator[Named]:
    """The globals and the variables of functions around it that a function names."""
    code, cells = function.__code__, function.__closure__ or ()
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(code.co_freevars, cells, strict=True):
        with suppress(ValueError):  # of a cell that is empty yet
            yield name, cell.cell_contents


def _tensors_of(name: str, root: Any) -> Iterator[tuple[str, torch.Tensor, Place | None]]:
    """All tensors of a root, with their names and, where they have one, their places."""
    if isinstance(root, torch.Tensor):
        yield name, root, None
    elif isinstance(root, torch.export.ExportedProgram):
        for key, tensor in {**root.state_dict, **root.constants}.items():
            if isinstance(tensor, torch.Tensor):
                yield key, tensor, None
    elif isinstance(root, torch.jit.ScriptModule):  # its dicts are made anew when they are read
        for key, tensor in (*root.named_parameters(), *root.named_buffers()):
            yield key, tensor, None
    elif isinstance(root, torch.nn.Module):
        for path, module in root.named_modules(prefix=name, remove_duplicate=False):
            yield from _own_tensors(path, module)


def _own_tensors(path: str, module: Any) -> Iterator[tuple[str, torch.Tensor, Place | None]]:
    for kind in ("_parameters", "_buffers", ""):
        held = module.__dict__[kind] if kind else module.__dict__
        for key, value in held.items():
            name = f"{path}.{key}".strip(".")
            if isinstance(value, torch.Tensor):
                yield name, value, (name, module, kind, key)
            elif not kind and isinstance(value, list | tuple | dict) and key[:1] != "_":
                for leaf in tree_leaves(value):
                    if isinstance(leaf, torch.Tensor):
                        yield name, leaf, None


def _modules_to(name: str, root: Any, owners: Iterable[str]) -> Iterator[tuple[Place, Any]]:
    """The modules that lead from a root to these."""
    if not isinstance(root, torch.nn.Module) or isinstance(root, torch.jit.ScriptModule):
        return
    known = dict(root.named_modules(prefix=name, remove_duplicate=False))
    paths = {path[:k] for path in owners for k in _ends(path) if len(path[:k]) > len(name)}
    for path in sorted(paths):
        above, _, key = path.rpartition(".")
        yield (path, known[above], "_modules", key), known[path]


def _ends(path: str) -> Iterator[int]:
    yield from (k for k, letter in enumerate(path) if letter == ".")
    yield len(path)
