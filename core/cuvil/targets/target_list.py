"""A list of targets, as a compile takes it: accelerators first, then their host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cuvil.errors import TargetError
from cuvil.ir.attrs import Attrs
from cuvil.ir.types import TensorType
from cuvil.plan.devices import Assignment, Device, DeviceKernel
from cuvil.rewrite.registry import load_rules
from cuvil.rewrite.rule import Rule
from cuvil.targets.backend import Backend, EmitFor
from cuvil.targets.registry import find
from cuvil.targets.target import Target


@dataclass(frozen=True)
class Targets:
    """What a compile is for. An op goes to the first accelerator that takes it, else to the host;
    see `plan.devices.Assignment`."""

    accelerators: tuple[tuple[Backend, Target], ...]
    host: tuple[Backend, Target]

    @property
    def backends(self) -> tuple[Backend, ...]:
        """All that take part, the host's last."""
        return (*(backend for backend, _ in self.accelerators), self.host[0])

    def assignment(self) -> Assignment:
        """A fresh assignment of ops to devices."""
        return Assignment([_device(*a) for a in self.accelerators], self.host[0].supports)

    def rules(self) -> list[Rule]:
        """The rewrite rules that the backends add to core's."""
        packages = [b.rules.__name__ for b in self.backends if b.rules is not None]
        return [rule for package in packages for rule in load_rules(package)]


def resolve(text: str = "cpu", cpu: str = "", features: str = "") -> Targets:
    """The targets that `a,b,host` names; see `registry.find` for each word.

    cpu, features: of the host. Without a host in the list it is this machine. Raises TargetError.
    """
    accelerators: dict[str, tuple[Backend, Target]] = {}
    words = [word.strip() for word in text.split(",")]
    for word in words:
        backend, target = find(word)
        if not backend.is_accelerator:
            break
        if backend.name in accelerators:
            raise TargetError(f"target '{backend.name}' stands twice in '{text}'")
        accelerators[backend.name] = (backend, target)
    else:
        word = "cpu"
    if word in words[:-1]:
        raise TargetError(
            f"target '{word}' is a host's: in a list, accelerators come first and one host last"
        )
    return Targets(tuple(accelerators.values()), find(word, cpu, features))


def _device(backend: Backend, target: Target) -> Device:
    emit, supports, space = backend.emit, backend.supports, backend.space
    if emit is None or supports is None:
        raise TargetError(f"backend '{backend.name}' lacks supports or emit")
    return Device(space.name, space.align, supports, partial(_emit, emit, target))


def _emit(
    emit: EmitFor, target: Target, op: str, types: Sequence[TensorType], attrs: Attrs
) -> DeviceKernel:
    return emit(op, types, attrs, target)
